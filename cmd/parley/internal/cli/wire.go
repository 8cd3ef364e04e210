package cli

import (
	"context"
	"fmt"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// confirmOnTerminal asks the person at the controlling terminal. Without a terminal nobody can approve.
func confirmOnTerminal(ctx context.Context, ask host.Ask, reason string) (bool, error) {
	reason = manifest.CleanLine(reason)
	tty, err := openTerminal()
	if err != nil {
		return false, host.Errorf(host.Denied,
			"%s.%s requires confirmation (%s), and there is no terminal to ask on; nothing was run", ask.Plugin, ask.Tool, reason).
			WithSteps(host.OperatorStep(host.OpPolicyExplain, ask.Plugin+"."+ask.Tool))
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s wants to call %s.%s (%s). Allow it? [y/N] ", ask.Caller, ask.Plugin, ask.Tool, reason)
	return confirmed(ctx, tty)
}
