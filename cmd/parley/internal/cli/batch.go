package cli

import (
	"context"
	"encoding/json"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

type batchOptions struct {
	app *App
	command.BatchOptions
}

func newBatch(app *App) *cobra.Command {
	opts := &batchOptions{app: app}
	cmd := &cobra.Command{
		Use:   "batch FILE|-",
		Short: "NDJSON calls",
		Long: `Each line is {"id":1,"tool":"cdp.Page.navigate","params":{..},"options":{..}} and gets a reply of one line ` +
			"with the same id\n(default: the line's number). \"${1.frameId}\" in params or options is replaced by data of the " +
			"call with the id 1,\nwith its type; \"${param.url}\" by what --param gives; $${ stands for ${. Options are " +
			"those of a call, such as\n" + `{"wait":"load","max_bytes":1000,"out":"page.png"}, or until, an event to wait for.`,
		Example: "parley batch calls.ndjson\nparley batch login.ndjson --param url=https://example.com",
		RunE:    runWith(runBatch, opts, &opts.Path),
	}
	cmd.Flags().BoolVar(&opts.ContinueOnError, "continue-on-error", false, "continue after a call that failed")
	cmd.Flags().StringArrayVar(&opts.Set, "param", nil, "KEY=VALUE for ${param.KEY}, repeatable")
	cmd.Flags().StringVar(&opts.Params, "params", "", "all of them: JSON, @FILE or -")
	return cmd
}

// runBatch prints one line for each call as soon as its answer is there. It exits with the code of the first call that
// failed.
func runBatch(ctx context.Context, opts *batchOptions) error {
	runtime.GOMAXPROCS(1) // calls run one at a time: waking a second processor for each costs more than it gives
	app := opts.app
	ctx = countDocs(ctx, func(w io.Writer, d *host.Docs) { _ = writeJSON(w, app.deps.WithCommands(d.ToolDocs), false) })
	failed, err := command.Batch(ctx, app.deps, opts.BatchOptions, app.printReply)
	if err != nil {
		return writeError(err)
	}
	if failed != nil {
		return &exitStatus{failed.ExitCode()}
	}
	return nil
}

// printReply prints the answer to one call of a batch as a line of JSON.
func (a *App) printReply(id json.RawMessage, answer *host.Answer) error {
	env := a.deps.Envelope(answer)
	if a.deps.Debugging {
		a.mu.Lock()
		env.Debug, a.lines = a.lines, nil
		a.mu.Unlock()
	}
	raw, err := manifest.Marshal(command.NewBatchReply(id, env))
	if err == nil {
		err = a.printRecord(raw)
	}
	return err
}
