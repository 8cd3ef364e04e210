// Package module decides which modules are plugins, and what they may import.
package module

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// findAssets returns the tar with the assets of a plugin, or nil if its wasm file has none.
func findAssets(wasm []byte, m *manifest.Manifest) ([]byte, error) {
	data, err := sections.ReadAssets(wasm)
	if err == nil && data == nil {
		return nil, checkAssets(false, m)
	}
	if err == nil {
		_, err = world.ParseAssets(data)
	}
	if err != nil {
		return nil, Errorf(m, "its assets: %s", world.Line(err.Error(), 300))
	}
	return data, nil
}

// checkAssets checks that a wasm file has the assets of its manifest.
func checkAssets(has bool, m *manifest.Manifest) error {
	if has || m.Assets == nil {
		return nil
	}
	return Errorf(m, "its manifest has assets, but the wasm file has no section parley.assets with a tar of them; "+
		"parley plugin pack adds the folder assets beside it; or remove assets from the manifest")
}

// Check validates a module against its manifest at install, without compiling it: the binary format with all its counts
// and bounds, the imports, the required exports, the initial memory, the scripts for pages, and the assets. Errors are
// *host.Error with code invalid_plugin; they say what is wrong and how to fix it.
func Check(wasm []byte, m *manifest.Manifest) error {
	if m.Kind == manifest.KindHTTP {
		return nil // its module contains only the manifest
	}
	if m.Kind == manifest.KindScript {
		if _, err := sections.ReadSource(wasm); err != nil {
			return Errorf(m, "%v", err)
		}
	} else if _, err := ValidateModule(wasm, m, LargestModule); err != nil {
		return err
	}
	for i := range m.Scripts {
		if _, err := sections.ReadScript(wasm, &m.Scripts[i]); err != nil {
			return Errorf(m, "%v; build the plugin again", err)
		}
	}
	_, err := findAssets(wasm, m)
	return err
}

// Read validates and instruments a module. assets is the tar of its assets, or nil if it has none.
func Read(wasm []byte, m *manifest.Manifest, l grant.ModuleLimits) (
	built *instrument.Module, assets []byte, err error,
) {
	if built, err = ValidateModule(wasm, m, l); err == nil {
		assets, err = findAssets(wasm, m)
	}
	return built, assets, err
}

// CheckRead checks a module that [Read] has returned against a manifest, which may differ from the one for Read.
func CheckRead(module *instrument.Module, hasAssets bool, m *manifest.Manifest) error {
	if err := checkModule(module, m, nil); err != nil {
		return err
	}
	return checkAssets(hasAssets, m)
}

// LargestModule has the largest limits of a module that a policy can set. [Check] applies them, because it does not
// know the policy. The policy's own limits apply before the module is compiled, which an installation does.
var LargestModule = grant.ModuleLimits{FileMiB: grant.MaxModuleMiB, Functions: grant.MaxFunctions,
	TableEntries: grant.MaxTableEntries}

// ValidateModule validates and instruments a module. Only its result may be compiled.
func ValidateModule(wasm []byte, m *manifest.Manifest, l grant.ModuleLimits) (*instrument.Module, error) {
	module, err := RewriteModule(wasm, l)
	if refused := (*instrument.Error)(nil); errors.As(err, &refused) {
		if raise := raiseLimit(m.Name, refused); raise != "" {
			return nil, Errorf(m, "%v; %s", err, raise)
		}
		return nil, refuseModule(wasm, m, err, refused.Rule(), refused.Fix)
	}
	if err := checkModule(module, m, wasm); err != nil {
		return nil, err
	}
	module.Exports = neededExports(module)
	return module, nil
}

// ErrForeign is the cause of a refusal because of the toolchain that built a module.
var ErrForeign = errors.New("built by a toolchain whose modules are not plugins")

// refuseModule returns the error for a module that breaks a rule. If the toolchain that built the module is known,
// the error names it and says what to build instead. That advice usually takes precedence over fix.
func refuseModule(wasm []byte, m *manifest.Manifest, cause error, rule, fix string) *host.Error {
	if t := ToolchainOf(wasm); t != nil && (fix == "" || t.Name != undefinedFunctions) {
		rule, fix, cause = "built by "+t.Name+"; "+rule, t.Advice, ErrForeign
	}
	e := Errorf(m, "%s", strings.TrimSuffix(rule+"; "+fix, "; "))
	e.Cause = cause
	return e
}

// RewriteModule validates and instruments a module within the limits of a plugin.
func RewriteModule(wasm []byte, l grant.ModuleLimits) (*instrument.Module, error) {
	return instrument.Rewrite(wasm, instrument.Config{MaxPages: world.MaxPages, Guards: WasiGuards(),
		Limits: instrument.Limits{FileBytes: l.FileMiB << 20, Functions: l.Functions, TableEntries: l.TableEntries}})
}

// raiseLimit says which setting of the policy would accept a module that exceeds a limit, or returns "".
func raiseLimit(plugin string, e *instrument.Error) string {
	var setting string
	needs, most := e.Needs, 0
	switch e.Limit {
	case instrument.LimitFile:
		setting, most, needs = "module_mib", LargestModule.FileMiB, (needs+1<<20-1)>>20
	case instrument.LimitFunctions:
		setting, most = "functions", LargestModule.Functions
	case instrument.LimitTableEntries:
		setting, most = "table_entries", LargestModule.TableEntries
	}
	if setting == "" || needs > most {
		return ""
	}
	return fmt.Sprintf("to accept it, set %s = %d under [plugin.%s.limits] in policy.toml", setting, needs, plugin)
}

// checkModule checks a decoded module against its manifest. wasm is the module as it was built, or nil if the module
// was accepted before.
func checkModule(module *instrument.Module, m *manifest.Manifest, wasm []byte) error {
	if err := checkImports(module, m, wasm); err != nil {
		return err
	}
	if err := checkExports(module, m, wasm); err != nil {
		return err
	}
	if limit := world.RequestedMemoryMiB(m); module.MemoryMin > limit*world.PagesPerMiB {
		return Errorf(m, "the module starts with %d MiB of memory but its manifest asks for %d MiB; set "+
			"\"limits\": {\"memory_mib\": %d} or more in the manifest",
			(module.MemoryMin+15)/16, limit, (module.MemoryMin+15)/16)
	}
	return nil
}

// Errorf returns the invalid_plugin error of a plugin.
func Errorf(m *manifest.Manifest, format string, args ...any) *host.Error {
	return host.Errorf(host.InvalidPlugin, "%s: %s", m.Name, fmt.Sprintf(format, args...))
}

func checkImports(module *instrument.Module, m *manifest.Manifest, wasm []byte) error {
	for _, i := range module.Imports {
		name := world.Line(i.Module, 60) + "." + world.Line(i.Name, 60)
		var known map[string]instrument.FuncType
		switch {
		case i.Module == WasiModule || i.Module == UnstableModule:
			known = WasiFunctions
		case i.Module == ParleyModule && m.Kind == manifest.KindParley:
			known = ParleyFunctions
		case i.Module == ParleyModule:
			return Errorf(m, "it imports %s, which only plugins of kind parley/1 may import; set \"kind\": "+
				"\"parley/1\" or remove the import", name)
		case i.Module == ExtismModule && m.Kind == manifest.KindExtism:
			known = ExtismFunctions
		case i.Module == ExtismModule:
			return Errorf(m, "it imports %s, so it is an Extism plugin; set \"kind\": \"extism\", or let parley plugin "+
				"wrap write its manifest", name)
		case i.Module == ExtismUser && m.Kind == manifest.KindExtism:
			continue // a guest that calls it ends, whatever it is
		default:
			fix := ""
			if i.Module != "env" { // the linker's module; the toolchains have the advice for it
				fix = "build it without what needs " + world.Line(i.Module, 60)
			}
			return refuseModule(wasm, m, nil, fmt.Sprintf("it imports %s, but a plugin of kind %s may only import from %s", name,
				m.Kind, allowedModules(m.Kind)), fix)
		}
		want, ok := known[i.Name]
		if !ok {
			return refuseModule(wasm, m, nil, "it imports "+name+", which does not exist", "build it without that function")
		}
		if want != i.Type {
			return Errorf(m, "it imports %s with type (%s), expected (%s)", name, i.Type, want)
		}
	}
	return nil
}

func allowedModules(kind string) string {
	switch kind {
	case manifest.KindParley:
		return WasiModule + " and " + ParleyModule
	case manifest.KindExtism:
		return WasiModule + ", " + ExtismModule + " and " + ExtismUser
	}
	return WasiModule
}

func checkExports(module *instrument.Module, m *manifest.Manifest, wasm []byte) error {
	type need struct {
		name     string
		kind     byte
		typ      instrument.FuncType
		optional bool
	}
	var needs []need
	switch m.Kind {
	case manifest.KindParley:
		needs = []need{
			{name: "memory", kind: instrument.KindMemory},
			{name: "parley_alloc", typ: "i32->i32"},
			{name: "parley_call", typ: "i32,i32->i64"},
			{name: "parley_resume", typ: "i32,i32->i64", optional: true},
			{name: "_initialize", typ: "->", optional: module.Export("_start") == nil}, // else nothing starts its runtime
		}
	case manifest.KindWASI:
		needs = []need{{name: "memory", kind: instrument.KindMemory}, {name: "_start", typ: "->"}}
	case manifest.KindExtism:
		form, ok := ExtismForm(module)
		if !ok {
			return refuseModule(wasm, m, nil, "it does not list tools as MCP does: it exports neither describe and call nor "+
				"list_tools and call_tool", "")
		}
		needs = []need{{name: "memory", kind: instrument.KindMemory}, {name: "_initialize", typ: "->", optional: true},
			{name: "__wasm_call_ctors", typ: "->", optional: true}}
		for _, name := range []string{ExtismExports[form].List, ExtismExports[form].Call} {
			typ := instrument.FuncType("->i32")
			if module.Export(name).Type == "->" {
				typ = "->"
			}
			needs = append(needs, need{name: name, typ: typ})
		}
	default:
		return Errorf(m, "plugins of kind %q cannot be run; known kinds are parley/1, wasi, script and extism",
			world.Line(m.Kind, 40))
	}
	for _, n := range needs {
		e := module.Export(n.name)
		switch {
		case e == nil && n.optional:
		case e == nil:
			what := fmt.Sprintf("the function %s (%s)", n.name, n.typ)
			if n.kind == instrument.KindMemory {
				what = "its memory as \"memory\""
			}
			return refuseModule(wasm, m, nil, "it does not export "+what, exportHint(module, m, n.name))
		case e.Kind != n.kind:
			return Errorf(m, "its export %s must be a %s", n.name, instrument.KindNames[n.kind])
		case n.kind == instrument.KindFunc && e.Type != n.typ:
			return Errorf(m, "its export %s has type (%s), expected (%s)", n.name, e.Type, n.typ)
		case e.Imported:
			return Errorf(m, "its export %s is a re-exported import; it must be a function of the module", n.name)
		}
	}
	return nil
}

// neededExports returns the exports that checkExports requires for any kind.
func neededExports(module *instrument.Module) []instrument.Export {
	var out []instrument.Export
	for _, name := range []string{"memory", "parley_alloc", "parley_call", "_initialize", "_start", "call", "describe",
		"call_tool", "list_tools", "__wasm_call_ctors", "hs_init"} {
		if e := module.Export(name); e != nil {
			out = append(out, *e)
		}
	}
	return out
}

// exportHint guesses from the exports how the module was built, and returns advice for that.
func exportHint(module *instrument.Module, m *manifest.Manifest, missing string) string {
	switch {
	case m.Kind == manifest.KindParley && module.Export("_start") != nil:
		return "it is a command: build it as a reactor (Go: -buildmode=c-shared, C: -mexec-model=reactor), or set " +
			"\"kind\": \"wasi\""
	case m.Kind == manifest.KindWASI && module.Export("parley_call") != nil:
		return "it is a reactor: write a manifest with \"kind\": \"parley/1\" and pack it (parley help plugin pack)"
	case missing == "parley_alloc" || missing == "parley_call":
		return "sdk/abi.md says what a plugin must export"
	case missing == "_start":
		return "build it as a command, with a main function"
	}
	return ""
}
