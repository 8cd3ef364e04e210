package wasm

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRunnersHaveNoCapabilities reads from the kernel what the process of a runner may do, also if root started it.
func TestRunnersHaveNoCapabilities(t *testing.T) {
	skipWithoutRunners(t)
	e := runnerEngine(t)
	p := testGuest(t, e, "echo", "echo")
	inRunner(t, p, requestFor(t, p, "echo", `{"value":1}`))
	pids := running(e)
	if len(pids) != 1 {
		t.Fatalf("runners: %v", pids)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch name {
		case "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb":
			if seen++; strings.Trim(value, "0") != "" && (name != "CapBnd" || os.Geteuid() == 0) {
				t.Errorf("%s is %s", name, value)
			}
		case "NoNewPrivs":
			if seen++; value != "1" {
				t.Errorf("%s is %s", name, value)
			}
		}
	}
	if seen != 6 {
		t.Errorf("%d of 6 lines in %s", seen, status)
	}
}
