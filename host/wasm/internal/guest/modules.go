package guest

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/internal/world"
)

// hostModule is a module that guests may import. Its functions find the state of a call through the context.
type hostModule struct {
	name      string
	types     map[string]instrument.FuncType
	functions map[string]api.GoModuleFunc
	wasi      bool // it also has the engine's functions of WASI
}

// hostModulesOf returns the modules that a module may import.
func hostModulesOf(m *instrument.Module) []hostModule {
	all := []hostModule{{name: module.WasiModule, types: module.WasiFunctions, wasi: true},
		{name: module.ParleyModule, types: module.ParleyFunctions, functions: parleyModuleFunctions()}}
	if imports(m, module.UnstableModule) {
		all = append(all, hostModule{name: module.UnstableModule, types: module.WasiFunctions, wasi: true,
			functions: map[string]api.GoModuleFunc{"poll_oneoff": pollUnstable}})
	}
	if imports(m, module.ExtismModule) {
		types, functions := userFunctions(m)
		all = append(all, hostModule{name: module.ExtismModule, types: module.ExtismFunctions,
			functions: extismModuleFunctions()},
			hostModule{name: module.ExtismUser, types: types, functions: functions})
	}
	return all
}

func imports(m *instrument.Module, name string) bool {
	return slices.ContainsFunc(m.Imports, func(i instrument.Import) bool { return i.Module == name })
}

// Link instantiates the modules that the code may import. If refused is not nil, a call of a function for which it
// returns true ends the guest.
func (c *Code) Link(ctx context.Context, refused func(name string) bool) error {
	for _, h := range hostModulesOf(c.Module) {
		b := c.Runtime.NewHostModuleBuilder(h.name)
		if h.wasi {
			wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(b)
		}
		for name, t := range h.types {
			f := h.functions[name]
			if refused != nil && refused(name) {
				f = func(context.Context, api.Module, []uint64) {
					panic(world.GuestHalt{Err: host.Errorf(host.Denied, "it calls %s", name)})
				}
			}
			if f != nil {
				params, results := engineTypes(t)
				b.NewFunctionBuilder().WithGoModuleFunction(f, params, results).Export(name)
			}
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	meter := c.Runtime.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder()
	_, err := meter.WithGoFunction(api.GoFunc(yield), nil, nil).Export(instrument.YieldName).Instantiate(ctx)
	return err
}

// engineTypes returns the types of a function's parameters and results in the engine's form.
func engineTypes(t instrument.FuncType) (params, results []api.ValueType) {
	known := map[string]api.ValueType{"i32": api.ValueTypeI32, "i64": api.ValueTypeI64, "f64": api.ValueTypeF64}
	list := func(s string) (types []api.ValueType) {
		for name := range strings.SplitSeq(s, ",") {
			if name != "" {
				types = append(types, known[name])
			}
		}
		return types
	}
	before, after, _ := strings.Cut(string(t), "->")
	return list(before), list(after)
}

// giveWayEvery is how long a guest computes before other goroutines get its processor.
const giveWayEvery = 200 * time.Microsecond

// yield is called by instrumented code many times per millisecond. Any call into Go allows a garbage collection to
// begin. Yielding before the scheduler would preempt after 10 ms keeps other calls fast while a guest computes. It
// does not yield to the scheduler each time, because the scheduler then also wakes an idle processor to look for
// work.
func yield(ctx context.Context, _ []uint64) {
	c, now := callOf(ctx), time.Now()
	c.Control.CheckpointAt(now)
	if now.Sub(c.gaveWay) >= giveWayEvery {
		c.gaveWay = now
		runtime.Gosched()
	}
}
