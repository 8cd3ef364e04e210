package tree

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Environment returns the environment for a parley with a data folder of its own.
func Environment(home string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PARLEY_") || strings.HasPrefix(v, "PARLEY_CHROME=") {
			env = append(env, v)
		}
	}
	return append(env, "PARLEY_HOME="+home, "PARLEY_SESSION=agent", "NO_COLOR=1")
}

// CloseBrowser closes the browser of a data folder if one is open, also one in which an MCP server that has just exited
// still has a session.
func CloseBrowser(binary, home string) error {
	cmd := exec.Command(binary, "cdp", "close", "--all")
	cmd.Env = Environment(home)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("parley cdp close --all: %w\n%s", err, out)
	}
	return nil
}
