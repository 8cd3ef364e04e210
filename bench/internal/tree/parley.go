package tree

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

// Main runs a command of this module from the root of the tree, until it is interrupted. An error ends the process with
// exit code 1. name is that of the command, for the message.
func Main(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := Enter()
	if err == nil {
		err = run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

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
