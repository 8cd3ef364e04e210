// Command parley hosts tools as sandboxed plugins and teaches agents how to use them.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/cli"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

func main() {
	parley.Child()
	collectLater()
	growStack(false)
	os.Exit(cli.Main(os.Args[1:], command.System()))
}

// collectLater delays the first garbage collection from 4 MB of heap to 16 MB. Most commands end before that, and
// with a thousand plugins one collection takes a fifth of the time of a search. A server also collects less often:
// with its 3 MB in use it would otherwise spend a sixth of its time on collection. From 8 MB in use on, the collector
// works as usual.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	const later = 400 // percent
	afterCollection(debug.SetGCPercent(later))
}

func afterCollection(usual int) {
	const small = 8 << 20
	// A cleanup needs an object of its own, because the runtime may combine tiny objects without pointers.
	type sentinel struct{ _ *sentinel }
	runtime.AddCleanup(&sentinel{}, func(usual int) {
		var memory runtime.MemStats
		if runtime.ReadMemStats(&memory); memory.HeapAlloc > small {
			debug.SetGCPercent(usual)
			return
		}
		afterCollection(usual)
	}, usual)
}

// growStack makes the goroutine's stack at once as large as most commands need it, instead of copying it each time it
// doubles. The frame must have that size; its content is not used.
//
//go:noinline
func growStack(used bool) {
	if used {
		var frame [40 << 10]byte
		runtime.KeepAlive(&frame)
	}
}
