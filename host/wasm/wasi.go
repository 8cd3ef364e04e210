package wasm

import (
	"context"
	cryptorand "crypto/rand"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

const (
	wasiModule   = "wasi_snapshot_preview1"
	parleyModule = "parley"
)

// Bounds of arguments to WASI functions. wazero has none: its descriptor table grows up to the number given to
// fd_renumber, and it processes vectors and paths without checking the context.
const (
	maxVectors    = 1024
	maxDescriptor = 4096
	maxPath       = 4096
	maxEntries    = 1 << 20 // bytes of directory entries

	errnoBadf        = 8
	errnoInval       = 28
	errnoNametoolong = 37
)

// wasiGuards returns the guards that instrumentation puts around WASI functions, of both versions.
var wasiGuards = sync.OnceValue(func() map[string]instrument.Guard {
	g := map[string]instrument.Guard{}
	add := func(name string, limit uint32, errno int32, params ...int) {
		g[name] = instrument.Guard{Type: wasiFunctions[name], Params: params, Max: limit, Errno: errno}
	}
	add("fd_renumber", maxDescriptor, errnoBadf, 1)
	for _, name := range []string{"fd_read", "fd_pread", "fd_write", "fd_pwrite"} {
		add(name, maxVectors, errnoInval, 2)
	}
	add("poll_oneoff", maxVectors, errnoInval, 2)
	for _, name := range []string{"path_create_directory", "path_remove_directory", "path_unlink_file", "path_readlink"} {
		add(name, maxPath, errnoNametoolong, 2)
	}
	for _, name := range []string{"path_open", "path_filestat_get", "path_filestat_set_times"} {
		add(name, maxPath, errnoNametoolong, 3)
	}
	add("fd_readdir", maxEntries, errnoInval, 2)
	add("path_link", maxPath, errnoNametoolong, 3, 6)
	add("path_rename", maxPath, errnoNametoolong, 2, 5)
	add("path_symlink", maxPath, errnoNametoolong, 1, 4)
	// a call may take a tenth of a millisecond or more
	for _, name := range []string{"args_get", "environ_get", "fd_readdir", "poll_oneoff"} {
		guard := g[name]
		guard.Type, guard.Heavy = wasiFunctions[name], true
		g[name] = guard
	}
	all := make(map[string]instrument.Guard, 2*len(g)+len(unstableCode))
	for name, guard := range g {
		all[wasiModule+"."+name], all[unstableModule+"."+name] = guard, guard
	}
	for name, code := range unstableCode {
		guard := all[unstableModule+"."+name]
		guard.Type, guard.Before, guard.After = wasiFunctions[name], code.before, code.after
		all[unstableModule+"."+name] = guard
	}
	return all
})

// instantiateHostModules instantiates the modules that guests may import. They find the state of a call through the
// context.
func instantiateHostModules(ctx context.Context, p *compiledPlugin) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return err
	}
	if slices.ContainsFunc(p.module.Imports, func(i instrument.Import) bool { return i.Module == unstableModule }) {
		if err := instantiateUnstable(ctx, p.runtime); err != nil {
			return err
		}
	}
	if importsExtism(p.module) {
		if err := instantiateExtism(ctx, p); err != nil {
			return err
		}
	}
	if err := instantiateMeter(ctx, p.runtime); err != nil {
		return err
	}
	return instantiateParleyModule(ctx, p.runtime)
}

// instantiateMeter instantiates the module of the function that instrumented code calls.
func instantiateMeter(ctx context.Context, r wazero.Runtime) error {
	meter := r.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder()
	_, err := meter.WithGoFunction(api.GoFunc(yield), nil, nil).Export(instrument.YieldName).Instantiate(ctx)
	return err
}

// giveWayEvery is how long a guest computes before other goroutines get its processor.
const giveWayEvery = 200 * time.Microsecond

// yield is called by instrumented code many times per millisecond. Any call of Go lets a garbage collection begin.
// Giving way without the scheduler's preemption after 10 ms keeps other calls quick while a guest computes. It is not
// done each time, because the scheduler then also wakes an idle processor to look for work.
func yield(ctx context.Context, _ []uint64) {
	c, now := callOf(ctx), time.Now()
	c.checkpointAt(now)
	if now.Sub(c.gaveWay) >= giveWayEvery {
		c.gaveWay = now
		runtime.Gosched()
	}
}

// configureSystem configures a guest's clocks, random source and streams. A guest that begins with an image has them
// as they were when it was taken.
func (c *call) configureSystem(config wazero.ModuleConfig) wazero.ModuleConfig {
	c.started = time.Now()
	if i := c.plugin.image; i != nil {
		c.started = c.started.Add(-i.Clock)
	}
	wall, mono := c.wallClock, func() int64 { return int64(time.Since(c.started)) }
	if c.taken != nil {
		wall, mono = c.taken.wallClock, c.taken.monotonicClock
	}
	return config.
		WithWalltime(wall, sys.ClockResolution(time.Microsecond)).
		WithNanotime(mono, 1).
		WithNanosleep(c.sleep).
		WithOsyield(c.checkpoint).
		WithRandSource(c.randomSource()).
		WithStdin(c.stdin).WithStdout(c.stdout).WithStderr(c.stderr)
}

// wallClock returns the time if it is granted, else always the same.
func (c *call) wallClock() (seconds int64, nanoseconds int32) {
	if !c.r.Grant.Clock {
		return 0, 0
	}
	now := time.Now()
	return now.Unix(), int32(now.Nanosecond())
}

// sleep ends early when the call ends.
func (c *call) sleep(ns int64) {
	began := time.Now()
	timer := time.NewTimer(time.Duration(max(ns, 0)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
	}
	c.stops = c.stops.Add(time.Since(began))
	c.checkpoint()
}

// randomSource returns real randomness if granted, else the same stream in every call.
func (c *call) randomSource() io.Reader {
	if c.r.Grant.Random {
		return c.withCheckpoints(cryptorand.Reader)
	}
	var stream io.Reader = rand.NewChaCha8([32]byte([]byte("parley: no randomness is granted")))
	switch {
	case c.taken != nil:
		stream = c.taken.countRandom(stream)
	case c.plugin.image != nil:
		_, _ = io.CopyN(io.Discard, stream, c.plugin.image.Random)
	}
	return c.withCheckpoints(stream)
}

// withCheckpoints reads in chunks with a checkpoint before each.
func (c *call) withCheckpoints(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		c.checkpoint()
		return r.Read(p[:min(len(p), chunkBytes)])
	})
}

// chunkBytes is how many bytes a host function processes between checkpoints.
const chunkBytes = 1 << 20

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// wasiFunctions maps the functions of WASI preview 1 to their types.
var wasiFunctions = map[string]instrument.FuncType{
	"args_get":                "i32,i32->i32",
	"args_sizes_get":          "i32,i32->i32",
	"clock_res_get":           "i32,i32->i32",
	"clock_time_get":          "i32,i64,i32->i32",
	"environ_get":             "i32,i32->i32",
	"environ_sizes_get":       "i32,i32->i32",
	"fd_advise":               "i32,i64,i64,i32->i32",
	"fd_allocate":             "i32,i64,i64->i32",
	"fd_close":                "i32->i32",
	"fd_datasync":             "i32->i32",
	"fd_fdstat_get":           "i32,i32->i32",
	"fd_fdstat_set_flags":     "i32,i32->i32",
	"fd_fdstat_set_rights":    "i32,i64,i64->i32",
	"fd_filestat_get":         "i32,i32->i32",
	"fd_filestat_set_size":    "i32,i64->i32",
	"fd_filestat_set_times":   "i32,i64,i64,i32->i32",
	"fd_pread":                "i32,i32,i32,i64,i32->i32",
	"fd_prestat_dir_name":     "i32,i32,i32->i32",
	"fd_prestat_get":          "i32,i32->i32",
	"fd_pwrite":               "i32,i32,i32,i64,i32->i32",
	"fd_read":                 "i32,i32,i32,i32->i32",
	"fd_readdir":              "i32,i32,i32,i64,i32->i32",
	"fd_renumber":             "i32,i32->i32",
	"fd_seek":                 "i32,i64,i32,i32->i32",
	"fd_sync":                 "i32->i32",
	"fd_tell":                 "i32,i32->i32",
	"fd_write":                "i32,i32,i32,i32->i32",
	"path_create_directory":   "i32,i32,i32->i32",
	"path_filestat_get":       "i32,i32,i32,i32,i32->i32",
	"path_filestat_set_times": "i32,i32,i32,i32,i64,i64,i32->i32",
	"path_link":               "i32,i32,i32,i32,i32,i32,i32->i32",
	"path_open":               "i32,i32,i32,i32,i32,i64,i64,i32,i32->i32",
	"path_readlink":           "i32,i32,i32,i32,i32,i32->i32",
	"path_remove_directory":   "i32,i32,i32->i32",
	"path_rename":             "i32,i32,i32,i32,i32,i32->i32",
	"path_symlink":            "i32,i32,i32,i32,i32->i32",
	"path_unlink_file":        "i32,i32,i32->i32",
	"poll_oneoff":             "i32,i32,i32,i32->i32",
	"proc_exit":               "i32->",
	"proc_raise":              "i32->i32",
	"random_get":              "i32,i32->i32",
	"sched_yield":             "->i32",
	"sock_accept":             "i32,i32,i32->i32",
	"sock_recv":               "i32,i32,i32,i32,i32,i32->i32",
	"sock_send":               "i32,i32,i32,i32,i32->i32",
	"sock_shutdown":           "i32,i32->i32",
}
