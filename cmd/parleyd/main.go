// Command parleyd serves the tools of Parley to a team: MCP over HTTP, by one configuration file. It runs on Linux.
package main

import (
	"os"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/service"
)

func main() {
	parley.Child()
	os.Exit(service.Main(os.Args[1:], os.Stdout, os.Stderr))
}
