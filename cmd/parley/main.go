// Command parley hosts tools as sandboxed plugins and teaches agents how to use them.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/cli"
)

func main() {
	parley.Child()
	collectLater()
	growStack(false)
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}

// collectLater delays the first garbage collection from 4 MB of heap to 16 MB. Most commands end before that, and with
// a thousand plugins one collection takes a fifth of the time of a search. After the first one the collector works as
// usual, for commands that run longer.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	const later = 400 // percent
	usual := debug.SetGCPercent(later)
	// A cleanup needs an object of its own: the runtime may put tiny objects without pointers together with others.
	type sentinel struct{ _ *sentinel }
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
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
