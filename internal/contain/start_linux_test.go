package contain

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// TestStartDropsCapabilities starts a program, as root in CI: it has no capability in any set, and gets none.
func TestStartDropsCapabilities(t *testing.T) {
	cmd, out := exec.Command("/bin/cat", "/proc/self/status"), &bytes.Buffer{}
	cmd.Stdout = out
	if err := Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CapInh:\t0", "CapPrm:\t0", "CapEff:\t0", "CapAmb:\t0", "NoNewPrivs:\t1\n"} {
		_, rest, found := strings.Cut(out.String(), want)
		line, _, _ := strings.Cut(rest, "\n")
		if !found || strings.HasPrefix(want, "Cap") && strings.Trim(line, "0") != "" {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
