//go:build !linux

package cli

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

var signals = map[string]os.Signal{"INT": os.Interrupt, "KILL": os.Kill}

func scriptNoProcs(*testscript.TestScript, bool, []string) {}

func scriptKillHome(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("processes cannot be listed on this system")
}
