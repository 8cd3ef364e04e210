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

// collectLater delays the first garbage collection from 4 MB of heap to 16 MB. Most commands end before that, and with
// a thousand plugins one collection takes a fifth of the time of a search. A server collects less often, too: with its
// 3 MB in use it would spend a sixth of its time on that. From 8 MB in use on, the collector works as usual.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	const later = 400 // percent
	afterCollection(debug.SetGCPercent(later))
}

func afterCollection(usual int) {
	const small = 8 << 20
	// A cleanup needs an object of its own: the runtime may put tiny objects without pointers together with others.
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

// growStack makes the stack of its goroutine as large as most commands need it at once, instead of copying it each time
// it doubles. The frame has to have the size; nothing of it is used.
//
//go:noinline
func growStack(used bool) {
	if used {
		var frame [40 << 10]byte
		runtime.KeepAlive(&frame)
	}
}
