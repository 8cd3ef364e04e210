package parley

import (
	"fmt"
	"os"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/egress"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm"
)

// childVariable names the job of a process that Parley started from the binary that it is part of.
const childVariable = "PARLEY_CHILD"

// Child runs the job of a process that Parley started from this binary, such as compiling a plugin or owning a browser,
// and then ends the process. In any other process it returns at once. It must come first in main of every program that
// opens a host.
func Child() {
	job := os.Getenv(childVariable)
	if job == "" {
		return
	}
	protect.CleanEnvironment()
	// On Linux the process was started as /proc/self/exe, and process lists would call it "exe".
	_ = os.WriteFile("/proc/self/comm", []byte("parley"), 0)
	switch job {
	case cdp.KeeperJob:
		os.Exit(cdp.KeeperMain(keeperEgress(egress.Config{})))
	case wasm.CompileJob:
		os.Exit(wasm.CompileMain())
	case wasm.RunnerJob:
		os.Exit(wasm.RunnerMain())
	}
	fmt.Fprintf(os.Stderr, "Error: %s=%q is not a job of this binary\n", childVariable, job)
	os.Exit((&host.Error{Code: host.ConfigError}).ExitCode())
}

// keeperEgress returns a function that makes the egress for the pages of plugins, by the operator's rules at the time
// when they dial. The folders are found before the keeper leaves its working directory.
func keeperEgress(cfg egress.Config) func() (outbound.Egress, error) {
	p := New(Config{})
	return func() (outbound.Egress, error) {
		rules, err := p.Policy()
		if err != nil {
			return nil, err
		}
		cfg.Rules = rules.Egress
		return struct { // what the keeper knows of the operator's files
			outbound.Egress
			*policy.Policy
		}{egress.New(cfg), rules}, nil
	}
}
