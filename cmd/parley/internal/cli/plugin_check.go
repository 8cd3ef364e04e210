package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
)

func newPluginCheck(app *App) *cobra.Command {
	return &cobra.Command{
		Use:               "check NAME",
		Short:             "Check that search finds each tool by its task phrases",
		Example:           "parley plugin check text",
		ValidArgsFunction: app.completePlugins,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return missingWord("plugin check", "one NAME", "parley plugin list")
			}
			return app.checkPlugin(cmd.Context(), args[0])
		},
	}
}

// checkPlugin looks for each task phrase among all that is installed; a phrase that does not find its own tool is an error,
// so that an author's CI notices.
func (a *App) checkPlugin(ctx context.Context, name string) error {
	h, err := a.deps.Host(ctx)
	if err != nil {
		return err
	}
	report, err := h.CheckTasks(name)
	if err != nil {
		return err
	}
	if len(report.Misses) > 0 {
		const most = 10 // that are named
		var misses []string
		for _, m := range report.Misses[:min(most, len(report.Misses))] {
			misses = append(misses, m.String())
		}
		return host.Errorf(host.InvalidPlugin, "%d of %s of %s do not find their own tool among the first five: %s",
			len(report.Misses), plural(report.Phrases, "task phrase"), report.Plugin, strings.Join(misses, "; ")).
			WithNext("parley search PHRASE --explain")
	}
	return a.answer(report, []string{"parley search --eval FILE"}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s of %s, each finds its own tool among the first five\n",
			report.Plugin, plural(report.Phrases, "task phrase"), plural(report.Tools, "tool"))
	})
}
