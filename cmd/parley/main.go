// Command parley hosts tools as sandboxed plugins and teaches agents how to use them.
package main

import (
	"os"

	"github.com/parley-tools/parley/cmd/parley/internal/cli"
)

func main() {
	if code, entered := cli.Child(); entered {
		os.Exit(code)
	}
	os.Exit(cli.Main(os.Args[1:], cli.System()))
}
