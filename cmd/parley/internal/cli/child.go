package cli

import (
	"fmt"
	"os"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/egress"
	"github.com/parley-tools/parley/host/wasm"
)

// childVariable names the job of a process that Parley started from its own binary.
const childVariable = "PARLEY_CHILD"

// Child is the one door for processes that Parley starts from its own binary. It must be the first thing
// that main does: a child shares nothing with the command line but the binary.
func Child() (code int, entered bool) {
	job := os.Getenv(childVariable)
	if job != "" { // on Linux it was started as /proc/self/exe, and lists of processes would call it "exe"
		_ = os.WriteFile("/proc/self/comm", []byte("parley"), 0)
	}
	switch job {
	case "":
		return 0, false
	case cdp.KeeperJob:
		return cdp.KeeperMain(keeperEgress(egress.Config{})), true
	case wasm.CompileJob:
		return wasm.CompileMain(), true
	case wasm.IsolateJob:
		return wasm.IsolateMain(), true
	default:
		fmt.Fprintf(os.Stderr, "Error: %s=%q is no job of this binary\n", childVariable, job)
		return 88, true
	}
}

// keeperEgress makes what the pages of plugins dial through, by the operator's rules as they are when they dial. The folders are found before the
// keeper leaves the one that it was started in.
func keeperEgress(cfg egress.Config) func() (host.Egress, error) {
	app := newApp(System(), nil)
	app.dirs()
	return func() (host.Egress, error) {
		rules, err := app.policy()
		if err != nil {
			return nil, err
		}
		cfg.Rules = rules.Egress
		return egress.New(cfg), nil
	}
}
