package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

func newResult(app *command.App) *cobra.Command {
	opts := &resultOptions{app: app}
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Results",
		Long: "ID is that of the call, as the answer names it in next. The session keeps its last results for a day, and " +
			"so\ndo all calls without a session.",
		Example: "parley result c0123456789abcdef --jq '.nodes | length'\n" +
			"parley result c0123456789abcdef --out page.json",
		ValidArgsFunction: func(cmd *cobra.Command, words []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeResults(app, cmd, words, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("out") {
				if err := checkOut(opts.Out); err != nil {
					return err
				}
			}
			opts.ID = args[0]
			return runResult(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.JQ, "jq", "", "filter")
	cmd.Flags().StringVar(&opts.Out, "out", "", "decoded, to FILE")
	return cmd
}

func runResult(ctx context.Context, opts *resultOptions) error {
	app := opts.app
	data, err := result(ctx, app, *opts)
	if err != nil {
		return err
	}
	return app.Print(data, nil, nil)
}

// checkOut rejects a value of --out that is not the name of a file.
func checkOut(out string) error {
	if out != "" && out != "-" {
		return nil
	}
	return host.Errorf(host.InvalidArgs, "--out requires the name of a file, got %q", out).
		WithNext("--out page.png, or --out /dev/stdout")
}

// completeResults completes the id of a call with a result that is kept.
func completeResults(a *command.App, _ *cobra.Command, args []string, typed string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	session, err := a.Session()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids := a.Parley().Sessions().KeptIDs(session)
	return command.StartingWith(typed, ids), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// resultOptions are the options of reading a result that was kept.
type resultOptions struct {
	app *command.App
	ID  string // of the call
	JQ  string // filters the result; "" leaves it as it is
	Out string // a file that takes the result, decoded if it is binary; "" means none
}

// result returns the whole result of a call of the current session that was cut. With Out, and for a binary result, it
// is a [host.File]. The error is not_found if nothing is kept for the call.
func result(ctx context.Context, app *command.App, o resultOptions) (json.RawMessage, error) {
	sessions := app.Parley().Sessions()
	session, err := app.Session()
	if err != nil {
		return nil, err
	}
	kept, err := sessions.Kept(session, o.ID)
	if err != nil {
		return nil, noResult(o.ID, sessions.KeptIDs(session))
	}
	if !kept.JSON {
		return copyOut(kept.Path, o)
	}
	data, err := sessions.Result(session, o.ID)
	if err != nil {
		return nil, noResult(o.ID, nil)
	}
	if o.JQ != "" {
		if data, err = filterKept(ctx, app, o, data); err != nil {
			return nil, err
		}
	}
	if o.Out == "" {
		return data, nil
	}
	file := &command.OutFile{Path: o.Out, Filtered: o.JQ != ""}
	defer file.Discard()
	if catalog, err := app.Catalog(); err == nil && kept.Tool != "" {
		if at, err := catalog.Find(kept.Tool); err == nil && at.Tool != nil {
			file.Returns = at.Tool.Returns
		}
	}
	return file.Whole(data)
}

// filterKept filters a result, for as long as a call may take.
func filterKept(ctx context.Context, app *command.App, o resultOptions, data json.RawMessage) (json.RawMessage, error) {
	corrected, err := jq.Check(o.JQ)
	if err != nil {
		e := host.AsError(err)
		if corrected != "" {
			e = e.WithSteps(host.OperatorStep(host.OpResult, o.ID, "--jq", corrected))
		}
		return nil, e
	}
	s, err := app.Settings()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, host.DefaultTimeout))
	defer cancel()
	return jq.InProcess{}.Filter(ctx, o.JQ, data)
}

// copyOut copies binary content to the file of o, and returns it as a [host.File]; without Out, the file that is kept.
func copyOut(path string, o resultOptions) (json.RawMessage, error) {
	if o.JQ != "" {
		return nil, host.Errorf(host.InvalidArgs, "--jq filters JSON, and the result of call %s is binary",
			manifest.CleanLine(o.ID)).WithSteps(host.OperatorStep(host.OpResult, o.ID))
	}
	content, err := os.Open(path)
	if err != nil {
		return nil, host.Errorf(host.NotFound, "%s", manifest.CleanLine(err.Error()))
	}
	defer content.Close()
	if o.Out != "" {
		file := &command.OutFile{Path: o.Out, Raw: true}
		defer file.Discard()
		if _, err := io.Copy(file, content); err != nil {
			return nil, err
		}
		return file.Done()
	}
	head := make([]byte, command.HeadSize)
	n, _ := io.ReadFull(content, head)
	info, err := content.Stat()
	if err != nil {
		return nil, err
	}
	return manifest.Marshal(host.File{Out: path, Bytes: info.Size(), MIME: host.MediaType(head[:n], "")})
}

// noResult returns the error of an id for which nothing is kept, with the nearest ids of those for which something is.
func noResult(id string, kept []string) *host.Error {
	e := host.Errorf(host.NotFound,
		"no result is kept for call %q in this session: results that were cut are kept for a day, the last %d of a session",
		manifest.Clip(manifest.CleanLine(id), 80), session.MaxResults)
	for _, n := range schema.Nearest(id, kept, 3) {
		e.DidYouMean = append(e.DidYouMean, host.NearName(n))
	}
	return e.WithNext("make the call again; its option --out FILE writes the whole result", "parley help result")
}
