package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

// addModel adds the options of a command that asks a model.
func (a *App) addModel(cmd *cobra.Command, o *command.ModelOptions) {
	f := cmd.Flags()
	f.StringVar(&o.Record, "record", "", "keep exchanges in FILE, and do not ask again what it has")
	f.StringVar(&o.Replay, "replay", "", "ask no model: FILE has the answers")
	f.IntVar(&o.Budget.Calls, "max-calls", command.DefaultModelCalls, "end at this many requests; 0: no bound")
	f.IntVar(&o.Budget.Tokens, "max-tokens-spent", command.DefaultModelTokens, "end at this many tokens; 0: no bound")
	f.Float64Var(&o.Budget.Cost, "max-cost", 0, "end at this cost, by model.price_in and _out")
	addYes(cmd, &o.Yes)
}

// modelText prints what was spent on a model.
func modelText(w io.Writer, m *command.ModelRun) {
	if m.Stopped != "" {
		fmt.Fprintln(w, "ended early: "+manifest.CleanLine(m.Stopped))
	}
	about := ""
	if m.Estimated {
		about = "about "
	}
	fmt.Fprintf(w, "%s: %s, %d answered by %s; %s%d tokens sent, %d answered", manifest.CleanLine(m.Model),
		manifest.Plural(m.Calls, "request"), m.Recorded, m.Recording, about, m.In, m.Out)
	if m.Cost > 0 {
		fmt.Fprintf(w, ", cost %.4f", m.Cost)
	}
	fmt.Fprintln(w)
}

// malformedText prints how many answers could not be used.
func malformedText(w io.Writer, malformed, of int) {
	if malformed > 0 {
		fmt.Fprintf(w, "%d of %s malformed, not counted\n", malformed, manifest.Plural(of, "answer"))
	}
}
