package wasm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/internal/cache"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/world"
	"github.com/parley-tools/parley/internal/contain"
)

// CompileJob is the value of PARLEY_CHILD that turns a program into a compiler. Its main must then call
// [CompileMain] before anything else.
const CompileJob = "compile"

// Bounds of one compilation. CPython, Ruby and PHP need 4 to 9 s of CPU time and less than 768 MiB.
const (
	compileMemory         = 2 << 30
	compileEntry          = 1 << 30 // of native code on disk
	compileCPU            = 10 * time.Second
	maxCompileCPU         = 60 * time.Second
	compileWallFactor     = 10 // multiplied by the CPU time
	maxConcurrentCompiles = 2  // over all processes
	watchEvery            = 10 * time.Millisecond
)

// Exit codes of the compiler process.
const (
	compileOK = iota // stdout has the reason if there is no image
	_                // the Go runtime's exit codes of a crash are 1 and 2
	_
	compileRefused // the engine refused the module; stdout has the reason
	compileOverTime
	compileOverMemory
	compileDiskError // stdout has the reason
	compileOrphaned
	compileMisused
)

// budget bounds one compilation.
type budget struct {
	cpu    time.Duration
	memory uint64 // bytes
}

// compileBudget returns the budget for a code section of codeBytes bytes: 10 s of CPU time plus 1 s per MiB, at
// most 60 s, and 2 GiB of memory.
func compileBudget(codeBytes int) budget {
	return budget{min(compileCPU+time.Duration(codeBytes>>20)*time.Second, maxCompileCPU), compileMemory}
}

// budgetWithin returns the budget for a code section of codeBytes bytes. The policy may set another one in l.
func (e *Engine) budgetWithin(l grant.ModuleLimits, codeBytes int) budget {
	b := e.budget(codeBytes)
	return budget{cmp.Or(l.CompileTime, b.cpu), cmp.Or(uint64(l.CompileMemoryMiB)<<20, b.memory)}
}

// compilation is the argument of the compiler process, as JSON.
type compilation struct {
	Dir    string
	CPU    time.Duration
	Memory uint64 // bytes
	Image  *guest.ImageOrder
	Low    bool // run with low priority
}

// CompileMain runs the compiler and returns its exit code. The compiler is a process of its own, because compilation
// can be neither bounded nor interrupted within a process. It reads an instrumented module from stdin and fills a
// folder. Where the kernel can confine the process, it can reach only that folder. The process ends itself when it
// exceeds its budget or when its parent is gone. On Linux and macOS the kernel enforces the limits, too. On other
// systems only the parent does, by wall time: ten times the CPU time.
func CompileMain() int {
	var job compilation
	if len(os.Args) == 2 {
		_ = json.Unmarshal([]byte(os.Args[1]), &job)
	}
	dir, b, order := job.Dir, budget{job.CPU, job.Memory}, job.Image
	if b.cpu <= 0 || b.memory == 0 {
		fmt.Fprintln(os.Stderr, "parley starts the compiler itself; it cannot be started by hand")
		return compileMisused
	}
	if job.Low {
		lowerPriority()
	}
	// The kernel's bounds apply if the process fails to end itself.
	contain.Process(contain.Rights{Folders: []contain.Folder{{Path: dir, Writable: true}}},
		contain.Bounds{CPU: b.cpu + 2*time.Second, Memory: b.memory, FileBytes: compileEntry})
	go watchBudget(b, os.Getppid())
	// Fewer collections save CPU time. Near the limit memory matters more.
	debug.SetGCPercent(300)
	debug.SetMemoryLimit(int64(b.memory / 2))
	module, err := io.ReadAll(os.Stdin)
	if err != nil {
		return compileOrphaned
	}
	noImage, err := compileModule(module, dir, order)
	var disk *fs.PathError
	var link *os.LinkError
	code := compileRefused
	switch {
	case err == nil:
		err, code = noImage, compileOK
	case errors.As(err, &disk), errors.As(err, &link):
		code = compileDiskError
	}
	if err != nil {
		fmt.Print(err)
	}
	return code
}

// watchBudget ends this process when it exceeds its budget or its parent is gone.
func watchBudget(b budget, parent int) {
	var memory runtime.MemStats
	for range time.Tick(watchEvery) {
		runtime.ReadMemStats(&memory)
		switch {
		case cpuTime() > b.cpu:
			os.Exit(compileOverTime)
		case memory.Sys-memory.HeapReleased > b.memory*15/16:
			os.Exit(compileOverMemory)
		case os.Getppid() != parent:
			os.Exit(compileOrphaned)
		}
	}
}

// compileModule compiles an instrumented module and stores the result in dir under the name that wazero looks up the
// compiled form of the stub module. Later processes then need not decode and validate the function bodies, which
// takes longer than everything else. If order is not nil and an image can be taken, instances of the stub begin with
// the image; noImage says why there is none.
func compileModule(module []byte, dir string, order *guest.ImageOrder) (noImage, err error) {
	full, stub := filepath.Join(dir, "full"), instrument.Stub(module)
	var globals []string
	if order != nil {
		module, globals = instrument.ExportGlobals(module)
	}
	err = compileInto(full, module, func(r wazero.Runtime, compiled wazero.CompiledModule) {
		if order == nil {
			return
		}
		var i *guest.Image
		if i, noImage = guest.TakeImage(r, compiled, globals, dir, order); noImage == nil {
			stub = instrument.Imaged(stub, i.Globals, i.Pages)
		} else {
			_ = os.Remove(filepath.Join(dir, guest.ImageName))
		}
	})
	if err != nil {
		return nil, err
	}
	if err := compileInto(dir, stub, nil); err != nil {
		return nil, err
	}
	code, err := cache.OnlyEntry(full)
	if err != nil {
		return nil, err
	}
	entry, err := cache.OnlyEntry(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(filepath.Join(full, code), filepath.Join(dir, entry)); err != nil {
		return nil, err
	}
	return noImage, os.RemoveAll(full)
}

// compileInto compiles a module into a cache folder, and passes the result to then unless that is nil.
func compileInto(dir string, module []byte, then func(wazero.Runtime, wazero.CompiledModule)) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	ctx := compilerContext()
	defer cache.Close(ctx)
	r := wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(cache))
	defer r.Close(ctx)
	compiled, err := r.CompileModule(ctx, module)
	if err == nil && then != nil {
		then(r, compiled)
	}
	return err
}

func engineConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithDebugInfoEnabled(false).
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst)
}

func compilerContext() context.Context {
	return experimental.WithCompilationWorkers(context.Background(), min(runtime.NumCPU(), 4))
}

// runCompiler compiles a module into an empty folder, in a child process if the engine has one. An error that is not a
// *host.Error means that compiled code could not be written.
func (e *Engine) runCompiler(j *compileJob, order *guest.ImageOrder, dir string) error {
	name, module := j.manifest.Name, j.module
	release, err := e.shared.Acquire(e.background, compileSlots, "", maxConcurrentCompiles, true)
	if err != nil {
		return closedError()
	}
	defer release()
	if e.cfg.Child == nil {
		_, err := compileModule(module.Wasm, dir, order)
		if _, disk := errors.AsType[*fs.PathError](err); disk {
			return err
		}
		return e.compileError(name, err)
	}
	start := time.Now()
	b := e.budgetWithin(j.limits, module.CodeBytes)
	cmd := e.childCommand(CompileJob, string(guest.Marshal(compilation{dir, b.cpu, b.memory, order, j.low})))
	stdout, stderr := &prefixWriter{limit: 4 << 10}, &prefixWriter{limit: 4 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(module.Wasm), stdout, stderr
	if err := contain.Start(cmd); err != nil {
		return world.Failed(host.Unavailable, err, "cannot start the compiler for %s: %v", name, err).
			WithSteps(step.Operator(step.OpDoctor))
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case err = <-exited:
	case <-e.background.Done():
		_ = cmd.Process.Kill()
		<-exited
		return closedError()
	case <-time.After(b.cpu * compileWallFactor):
		_ = cmd.Process.Kill()
		<-exited
		return host.Errorf(host.Busy, "compiling %s took longer than %v because the machine is busy; try again later", name,
			b.cpu*compileWallFactor)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	e.cfg.Debug(fmt.Sprintf("compiled %s in %v, %v of CPU time: %v", name, time.Since(start).Round(time.Millisecond),
		used.Round(time.Millisecond), cmd.ProcessState))
	if err == nil {
		if len(stdout.data) > 0 {
			e.cfg.Debug(name + " starts without an image: " + world.Line(stdout.String(), 300))
		}
		return nil
	}
	if len(stderr.data) > 0 {
		e.cfg.Debug("the compiler: " + world.Line(stderr.String(), 1000))
	}
	// The kernel's record of CPU time counts, too: a process that the kernel kills cannot report why.
	switch code := cmd.ProcessState.ExitCode(); {
	case code == compileOverTime, code < 0 && used >= b.cpu:
		return refuse(fmt.Sprintf("%s is refused: compiling its %d bytes of code takes more than %v of CPU time; to allow "+
			"more, set compile_time under [plugin.%s.limits] in policy.toml", name, module.CodeBytes, b.cpu, name), code >= 0)
	case code == compileOverMemory, code < 0, isOutOfMemory(stderr.String()):
		return refuse(fmt.Sprintf("%s is refused: compiling its %d bytes of code takes more than %d MiB of memory; to "+
			"allow more, set compile_memory_mib under [plugin.%s.limits] in policy.toml", name, module.CodeBytes, b.memory>>20,
			name), code >= 0)
	case code == compileDiskError:
		return errors.New(stdout.String())
	case code == compileRefused:
		return e.compileError(name, errors.New(stdout.String()))
	case code == compileMisused || code == compileOrphaned:
		return host.Errorf(host.Internal, "the compiler for %s ended with exit code %d", name, code)
	}
	return host.Errorf(host.InvalidPlugin, "%s is refused: the compiler crashed on it", name)
}

// refuse returns the error of a module that cannot be compiled. ever means that it never can be, because the compiler
// itself says so.
func refuse(message string, ever bool) *host.Error {
	e := &host.Error{Code: host.InvalidPlugin, Message: message}
	if ever {
		e.Cause = errOverBudget
	}
	return e
}

// isOutOfMemory reports whether the output of a crashed Go runtime shows that the kernel refused memory, for the
// heap or for a thread's stack.
func isOutOfMemory(output string) bool {
	return slices.ContainsFunc([]string{"out of memory", syscall.ENOMEM.Error(), "failed to allocate",
		"failed to reserve", "failed to create new OS thread", "pthread_create failed"},
		func(words string) bool { return strings.Contains(output, words) })
}

func (e *Engine) compileError(name string, err error) error {
	if err == nil {
		return nil
	}
	return world.Failed(host.InvalidPlugin, err, "%s cannot be compiled: %s", name, world.Line(err.Error(), 300))
}

// prefixWriter keeps the first limit bytes written to it.
type prefixWriter struct {
	limit int
	data  []byte
}

func (w *prefixWriter) Write(p []byte) (int, error) {
	w.data = append(w.data, p[:min(len(p), w.limit-len(w.data))]...)
	return len(p), nil
}

func (w *prefixWriter) String() string { return string(w.data) }
