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
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}

// collectLater puts the first garbage collection off from 4 MB of heap to 16: most commands end before that, and with a thousand
// plugins one collection is a fifth of a search. From then on the collector works as usual, for what runs longer.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	const later = 400 // percent
	usual := debug.SetGCPercent(later)
	type sentinel struct{ _ *sentinel } // with a pointer: the runtime may keep very small objects without any together with others
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
}
