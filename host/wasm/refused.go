package wasm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm/internal/cache"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
)

// maxRefused bounds how many refusals one engine remembers.
const maxRefused = 1000

// refusedSuffix is the suffix of files in the cache folder that say that a module cannot be compiled.
const refusedSuffix = ".refused"

// errOverBudget is the cause of a refusal that a compiler with the same bounds would always repeat. Only this process
// remembers other refusals, because the kernel may have killed the compiler, for instance.
var errOverBudget = errors.New("the compiler itself refused the module")

// refusal is the content of a file with refusedSuffix.
type refusal struct {
	Host    string `json:"host"`   // version that wrote it
	Bounds  string `json:"bounds"` // the bounds of the compilation
	Message string `json:"message"`
}

// bounds describes what a compilation may use. A refusal applies only to a compilation with the same bounds.
func (e *Engine) bounds(l grant.ModuleLimits) string {
	return fmt.Sprint(l, e.budget(0), e.budget(1<<20), e.budget(1<<30))
}

// rememberRefusal records that a module cannot be compiled, so that the next attempt fails at once. It records it in
// this engine, and for other engines with the cache folder dir if the outcome cannot change.
func (e *Engine) rememberRefusal(dir, key string, l grant.ModuleLimits, err *host.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.refused) >= maxRefused {
		clear(e.refused)
	}
	e.refused[key+e.bounds(l)] = err
	if dir == "" || !errors.Is(err, errOverBudget) {
		return
	}
	content := guest.Marshal(refusal{Host: e.cfg.HostVersion, Bounds: e.bounds(l), Message: err.Message})
	if err := os.WriteFile(filepath.Join(dir, key+refusedSuffix), content, 0o600); err != nil {
		e.cfg.Debug("cannot remember a refused module: " + manifest.CleanLine(err.Error()))
	}
}

// knownRefusal returns the recorded error of a module, or nil. It is a copy, because callers add to errors.
func (e *Engine) knownRefusal(dir, key string, l grant.ModuleLimits) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.refused[key+e.bounds(l)]; err != nil {
		copied := *err
		return &copied
	}
	if dir == "" {
		return nil
	}
	data, err := protect.ReadProject(filepath.Join(dir, key+refusedSuffix), cache.MaxChecksums)
	var r refusal
	if err != nil || json.Unmarshal(data, &r) != nil || r.Host != e.cfg.HostVersion || r.Bounds != e.bounds(l) {
		return nil
	}
	return &host.Error{Code: host.InvalidPlugin, Message: world.Line(r.Message, world.MaxMessage)}
}
