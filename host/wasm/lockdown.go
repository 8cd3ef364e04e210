package wasm

import (
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/contain"
)

// MissingIsolation returns what this system lacks to isolate a plugin, with or without granted folders. It returns nil
// if there is nothing.
func MissingIsolation(folders bool) []string { return contain.Missing(folders) }

// processMemory is the memory of a process in addition to its guests' memory and code: Go's heap, which holds a large
// result twice.
const processMemory = 768 << 20

// lockDown takes from this process whatever its guests do not need; see [contain.Process]. The kernel's bounds back
// those that the process enforces itself. instances is how many guests have memory at one time: the kernel counts the
// whole limit of each. cpu bounds the whole life of the process; 0 leaves that to the host.
func lockDown(l limits, grants []host.FSGrant, code int64, instances int, cpu time.Duration) (missing []string) {
	r := contain.Rights{Accept: instances > 1}
	for _, g := range grants {
		r.Folders = append(r.Folders, contain.Folder{Path: g.Source, Writable: g.Mode == "rw"})
	}
	return contain.Process(r, contain.Bounds{
		CPU: cpu, Memory: uint64(instances)*uint64(l.pages)*pageBytes + uint64(2*code) + processMemory,
		OpenFiles: uint64(instances*l.openFiles) + 64,
	})
}
