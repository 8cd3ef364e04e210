package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/manifest"
)

// CompileJob is the value of PARLEY_CHILD that makes a program a compiler: its main must then call CompileMain
// before it does anything else.
const CompileJob = "compile"

// What one compile may use. CPython, Ruby and PHP need 4 to 9 s of CPU time and less than 768 MiB.
const (
	compileMemory         = 2 << 30
	compileEntry          = 1 << 30 // of native code on disk
	compileCPU            = 10 * time.Second
	maxCompileCPU         = 60 * time.Second
	compileWallFactor     = 10 // times the CPU time
	maxConcurrentCompiles = 2  // at once in an engine
	watchEvery            = 10 * time.Millisecond
)

// Exit codes of the compiler.
const (
	compileOK = iota
	_         // 1 and 2 are a crash
	_
	compileRefused // by the engine; stdout says why
	compileOverTime
	compileOverMemory
	compileDiskError // stdout says why
	compileOrphaned
	compileMisused
)

// budget bounds one compile.
type budget struct {
	cpu    time.Duration
	memory uint64 // bytes
}

// compileBudget is what compiling a code section of so many bytes may take: 10 s of CPU time and one for each MiB, at most 60; 2 GiB.
func compileBudget(codeBytes int) budget {
	return budget{min(compileCPU+time.Duration(codeBytes>>20)*time.Second, maxCompileCPU), compileMemory}
}

// CompileMain is the compiler: a process of its own, because compiling can neither be bounded nor interrupted
// within one. It reads an instrumented module from stdin and fills the folder that its first argument names; the others are the CPU time in
// milliseconds and the memory in bytes that it may use. It ends itself when it has used more, and when its starter is gone. On Linux and macOS
// limits of the kernel stand behind that; elsewhere only the starter does, who ends it by the clock after ten times the CPU time.
func CompileMain() int {
	var dir string
	var b budget
	if len(os.Args) == 4 {
		dir = os.Args[1]
		ms, _ := strconv.ParseInt(os.Args[2], 10, 32)
		b.cpu = time.Duration(ms) * time.Millisecond
		b.memory, _ = strconv.ParseUint(os.Args[3], 10, 63)
	}
	if b.cpu <= 0 || b.memory == 0 {
		fmt.Fprintln(os.Stderr, "the compiler is started by parley itself, not by hand")
		return compileMisused
	}
	limitProcess(b)
	go watchBudget(b, os.Getppid())
	// Collecting less often saves CPU time; near the limit memory counts more.
	debug.SetGCPercent(300)
	debug.SetMemoryLimit(int64(b.memory / 2))
	module, err := io.ReadAll(os.Stdin)
	if err != nil {
		return compileOrphaned
	}
	err = compileModule(module, dir)
	var disk *fs.PathError
	var link *os.LinkError
	switch {
	case err == nil:
		return compileOK
	case errors.As(err, &disk), errors.As(err, &link):
		fmt.Print(err)
		return compileDiskError
	}
	fmt.Print(err)
	return compileRefused
}

// watchBudget ends this process when it has used what it may.
func watchBudget(b budget, parent int) {
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(watchEvery) {
		metrics.Read(memory)
		switch {
		case cpuTime() > b.cpu:
			os.Exit(compileOverTime)
		case memory[0].Value.Uint64()-memory[1].Value.Uint64() > b.memory*15/16:
			os.Exit(compileOverMemory)
		case os.Getppid() != parent:
			os.Exit(compileOrphaned)
		}
	}
}

// compileModule compiles an instrumented module and leaves in dir what wazero takes for the compiled form of its husk: that
// spares each later process reading and validating the bodies, which takes longer than all else together.
func compileModule(module []byte, dir string) error {
	full := filepath.Join(dir, "full")
	if err := compileInto(full, module); err != nil {
		return err
	}
	if err := compileInto(dir, instrument.Stub(module)); err != nil {
		return err
	}
	code, err := onlyEntry(full)
	if err != nil {
		return err
	}
	stub, err := onlyEntry(dir)
	if err != nil {
		return err
	}
	if err := os.Rename(code, stub); err != nil {
		return err
	}
	return os.RemoveAll(full)
}

func compileInto(dir string, module []byte) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return err
	}
	ctx := compilerContext()
	defer cache.Close(ctx)
	r := wazero.NewRuntimeWithConfig(ctx, engineConfig().WithCompilationCache(cache))
	defer r.Close(ctx)
	_, err = r.CompileModule(ctx, module)
	return err
}

func engineConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
}

func compilerContext() context.Context {
	return experimental.WithCompilationWorkers(context.Background(), min(runtime.NumCPU(), 4))
}

// onlyEntry finds the one file that wazero has left in a cache folder of its own.
func onlyEntry(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "wazero-*", "*"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", &fs.PathError{Op: "compile", Path: dir, Err: fmt.Errorf("%d files of compiled code are there, not one", len(found))}
	}
	return found[0], nil
}

// diskError says that compiled code could not be written.
type diskError struct{ error }

// runCompiler puts the compiled form of a module into an empty folder: in a process of its own if the engine has one. Errors are
// *host.Error or errNoDisk.
func (e *Engine) runCompiler(ctx context.Context, name string, module *instrument.Module, dir string) error {
	select {
	case e.compiling <- struct{}{}:
		defer func() { <-e.compiling }()
	case <-ctx.Done():
		return compileInterrupted(ctx, name)
	}
	if e.cfg.Child == nil {
		err := compileModule(module.Wasm, dir)
		var disk *fs.PathError
		if errors.As(err, &disk) {
			return diskError{err}
		}
		return e.compileError(name, err)
	}
	start := time.Now()
	b := e.budget(module.CodeBytes)
	cmd := e.childCommand(CompileJob, dir, strconv.FormatInt(b.cpu.Milliseconds(), 10), strconv.FormatUint(b.memory, 10))
	stdout, stderr := &prefixWriter{limit: 4 << 10}, &prefixWriter{limit: 4 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(module.Wasm), stdout, stderr
	if err := cmd.Start(); err != nil {
		return &host.Error{Code: host.Unavailable, Cause: err, Message: fmt.Sprintf("the compiler for %s cannot be started: %v", name, err), Next: []string{"parley doctor"}}
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	var err error
	select {
	case err = <-exited:
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		<-exited
		return compileInterrupted(ctx, name)
	case <-time.After(b.cpu * compileWallFactor):
		_ = cmd.Process.Kill()
		<-exited
		return host.Errorf(host.Busy, "compiling %s did not end within %v because the machine is busy; try again later", name, b.cpu*compileWallFactor)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	e.cfg.Debug(fmt.Sprintf("compiled %s in %v, %v of CPU time: %v", name, time.Since(start).Round(time.Millisecond), used.Round(time.Millisecond), cmd.ProcessState))
	if err == nil {
		return nil
	}
	if stderr.written > 0 {
		e.cfg.Debug("the compiler: " + truncate(manifest.CleanLine(stderr.String()), 1000))
	}
	// Budgets are judged by what the kernel says, too: who is killed cannot tell why.
	switch code := cmd.ProcessState.ExitCode(); {
	case code == compileOverTime, code < 0 && used >= b.cpu:
		return host.Errorf(host.InvalidPlugin, "%s is refused: compiling its %d bytes of code takes more than %v of CPU time", name, module.CodeBytes, b.cpu)
	case code == compileOverMemory, code < 0, isOutOfMemory(stderr.String()):
		return host.Errorf(host.InvalidPlugin, "%s is refused: compiling its %d bytes of code takes more than %d MiB of memory", name, module.CodeBytes, b.memory>>20)
	case code == compileDiskError:
		return diskError{errors.New(stdout.String())}
	case code == compileRefused:
		return e.compileError(name, errors.New(stdout.String()))
	case code == compileMisused || code == compileOrphaned:
		return host.Errorf(host.Internal, "the compiler for %s ended with %d", name, code)
	}
	return host.Errorf(host.InvalidPlugin, "%s is refused: the compiler crashed on it", name)
}

// isOutOfMemory tells whether a runtime's last words are about memory that the kernel did not give: for the heap, or for the stack of a thread.
func isOutOfMemory(output string) bool {
	for _, words := range []string{"out of memory", syscall.ENOMEM.Error(), "failed to allocate", "failed to reserve", "failed to create new OS thread", "pthread_create failed"} {
		if strings.Contains(output, words) {
			return true
		}
	}
	return false
}

func (e *Engine) compileError(name string, err error) error {
	if err == nil {
		return nil
	}
	return &host.Error{Code: host.InvalidPlugin, Cause: err, Message: fmt.Sprintf("%s cannot be compiled: %s", name, truncate(manifest.CleanLine(err.Error()), 300))}
}

func compileInterrupted(ctx context.Context, name string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &host.Error{Code: host.Timeout, Cause: ctx.Err(), Message: name + " was not compiled in time"}
	}
	return &host.Error{Code: host.Interrupted, Cause: ctx.Err(), Message: "compiling " + name + " was interrupted"}
}

// prefixWriter keeps the beginning of what is written to it.
type prefixWriter struct {
	limit, written int
	data           []byte
}

func (w *prefixWriter) Write(p []byte) (int, error) {
	w.written += len(p)
	w.data = append(w.data, p[:min(len(p), w.limit-len(w.data))]...)
	return len(p), nil
}

func (w *prefixWriter) String() string { return string(w.data) }
