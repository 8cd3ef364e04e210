package wasm

import (
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/manifest"
)

// nameFrames adds the names of functions, which compiled code does not have, to a trace.
func (p *Provider) nameFrames(t *job.Trace) {
	on, err := p.runsOn()
	if err != nil {
		return
	}
	wasm, err := on.loadParts().src.Wasm()
	if err != nil {
		return
	}
	wanted := map[int]string{}
	for _, f := range t.Frames {
		wanted[f.Function] = ""
	}
	t.Unnamed = !instrument.FunctionNames(wasm, wanted)
	for i := range t.Frames {
		if f := &t.Frames[i]; f.Function >= 0 {
			f.Name = manifest.Clip(manifest.CleanLine(readableName(wanted[f.Function])), 200)
		}
	}
}

// readableName returns the path in a mangled name of Rust, such as plugin::list for
// _ZN6plugin4list17h0123456789abcdefE. It returns any other name unchanged.
func readableName(name string) string {
	rest, mangled := strings.CutPrefix(name, "_ZN")
	var path []string
	for mangled && rest != "E" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > len(rest)-digits {
			return name
		}
		path, rest = append(path, rest[digits:digits+n]), rest[digits+n:]
	}
	if len(path) < 2 {
		return name
	}
	if last := path[len(path)-1]; len(last) == 17 && last[0] == 'h' {
		path = path[:len(path)-1] // drop the hash
	}
	return strings.Join(path, "::")
}
