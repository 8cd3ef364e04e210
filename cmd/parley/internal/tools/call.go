package tools

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/manifest"
)

// callOnly are the options that mean nothing without a tool.
var callOnly = []string{"params", "param", "dry-run", "jq", "out", "drain", "all", "send-anyway", "isolate"}

// AddCallFlags adds the options of a call.
func AddCallFlags(set *pflag.FlagSet, o *CallOptions) {
	set.StringVar(&o.Params, "params", "", "JSON, @FILE or -")
	set.Var((*command.Texts)(&o.Set), "param", "KEY=VALUE, a.b=@FILE")
	set.DurationVar(&o.Timeout, "timeout", 0, "end the call after this long, such as 10s")
	set.IntVar(&o.MaxBytes, "max-bytes", 0, "cut a larger result and warn")
	set.StringVar(&o.Browser, "browser", "", "use the browser of this name")
	set.StringVar(&o.Target, "target", "", "use this page: its id, part of its URL, or index")
	set.BoolVar(&o.DryRun, "dry-run", false, "validate and check the policy, run nothing")
	set.StringVar(&o.JQ, "jq", "", "filter")
	set.StringVar(&o.Out, "out", "", "decoded, to FILE")
	set.BoolVar(&o.Drain, "drain", false, "with --out: read the stream that the result names")
	set.BoolVar(&o.All, "all", false, "with cdp status and cdp close: all browsers")
	set.StringVar(&o.OnDialog, "on-dialog", "", "JavaScript dialogs: accept, accept=TEXT, dismiss or fail")
	set.StringVar(&o.Wait, "wait", "", "if the page navigates: wait for load, idle or none")
	set.StringVar(&o.Isolate, "isolate", "", "process: run the plugin in a process; call: in its own")
	set.BoolVar(&o.SendAnyway, "send-anyway", false, "send a command that the protocol data does not have")
}

func newCall(app *command.App) *cobra.Command {
	opts, describe, tier := &CallOptions{}, false, 0
	cmd := &cobra.Command{
		Use:               "call NAME [WORD...]",
		Short:             "Run",
		Example:           `parley call text.hash --param text=hello`,
		ValidArgsFunction: app.Complete().Qualified,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Tool, opts.Words = args[0], args[1:]
			opts.Unlimited = opts.MaxBytes == 0 && cmd.Flags().Changed("max-bytes")
			if describe {
				for _, name := range callOnly {
					if cmd.Flags().Changed(name) {
						return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --describe", name).
							WithSteps(host.DescribeStep(args[0], 0))
					}
				}
				if err := command.CheckMaxTokens(app, cmd.Flags()); err != nil {
					return err
				}
			} else if name := command.FirstSet(cmd, "tier", "max-tokens"); name != "" {
				return host.Errorf(host.InvalidArgs, "--%s requires --describe", name).
					WithSteps(host.DescribeStep(args[0], tier))
			}
			if describe {
				return runDescribe(cmd.Context(), app, describeOptions{Tool: opts.Tool, Tier: tier})
			}
			return RunCall(cmd.Context(), app, opts)
		},
	}
	AddCallFlags(cmd.Flags(), opts)
	cmd.Flags().BoolVar(&describe, "describe", false, "document the tool")
	cmd.Flags().IntVar(&tier, "tier", manifest.Tier2, "with --describe: how much, 1 to 3")
	command.AddMaxTokens(app, cmd.Flags())
	app.Complete().Call(cmd)
	cmd.Flags().SortFlags = false
	return cmd
}

// RunCall calls a tool and prints the answer.
func RunCall(ctx context.Context, app *command.App, opts *CallOptions) error {
	app.LiveBrowser = opts.Browser
	opts.Progress = app.Progress()
	app.Signaled.Brief = true
	answer, err := callTool(ctx, app, *opts)
	return printAnswer(app, answer, err)
}

// printAnswer prints what a call has returned. The answer is nil if err kept the call from being made.
func printAnswer(app *command.App, answer *host.Answer, err error) error {
	switch {
	case answer == nil:
		return err
	case answer.Err != nil:
		return app.Failed(answer)
	}
	return app.PrintEnvelope(app.Envelope(answer), nil)
}

// CallOptions are the options of a call of a tool.
type CallOptions struct {
	Tool string // qualified
	host.Options

	// Params is a JSON object, @FILE or - for [App.Input]. "" means none.
	Params string
	// Words are values of the tool's positional parameters.
	Words []string
	// Set are parameters as KEY=VALUE, each in addition to Params and Words.
	Set []string
	// All is a shorthand for the parameter all=true.
	All bool
	// Out is a file that takes the whole result, decoded if it is binary. "" means none.
	Out string
	// Trace shows where a plugin crashes; see [host.Error].
	Trace bool
	// Drain makes Out take the byte stream that the result names.
	Drain bool

	// Progress is called while the tool runs. It may be nil.
	Progress func(done, total float64, message string)
}

// callTool runs a tool. With Out, the data of the answer is a [host.File].
//
// If the call was made, the answer says which one it was, also of a call that failed, such as that of a tool that does
// not exist. The answer is nil if the options are invalid or the file cannot be written.
func callTool(ctx context.Context, app *command.App, o CallOptions) (*host.Answer, error) {
	h, err := app.Host(ctx)
	if err != nil {
		return nil, err
	}
	call, err := hostCall(app, o.Tool, o.Options, o.Out)
	if err != nil {
		return nil, err
	}
	call.Progress, call.Drain, call.Given.Drain = o.Progress, o.Drain, o.Drain
	find := h.Catalog().Find
	if o.SendAnyway {
		find = h.Catalog().FindAnyway
	}
	at, err := find(o.Tool)
	if err != nil { // the host refuses the call and records it
		return h.Call(ctx, call)
	}
	call.Trace = o.Trace || app.Debug
	call.Log = func(_ int, message string) { app.Debugf("%s: %s", at.Plugin, message) }
	if err := o.Check(); err != nil {
		return nil, err
	}
	if at.Tool != nil {
		if h.Catalog().Conflicts(at, o.Words) {
			return nil, host.Errorf(host.InvalidArgs, "%q after %s means something else elsewhere; a value goes into --param",
				manifest.CleanLine(strings.Join(o.Words, " ")), at.Tool.Name)
		}
		if call.Params, err = buildParams(ctx, app, at.Tool, &o); err != nil {
			call.Invalid = host.AsError(err)
		}
	}
	switch {
	case o.JQ != "" && o.Drain:
		return nil, host.Errorf(host.InvalidArgs, "--jq filters JSON, and --drain writes the content of a stream").
			WithNext("leave one of them out")
	case o.Drain && o.Out == "":
		return nil, host.Errorf(host.InvalidArgs, "--drain requires --out FILE").WithNext("--drain --out page.pdf")
	}
	if o.Out != "" {
		return callInto(ctx, h, call, o.Out, at.Tool)
	}
	answer, err := h.Call(ctx, call)
	if answer.Cut {
		answer.Warnings = append(answer.Warnings,
			"parley result prints the whole result, with --jq a part of it; --out FILE writes it")
	}
	return answer, err
}

// hostCall returns a call of a tool, with the configured values in place of options that are zero. out is the file that
// the result goes to, "" for none.
func hostCall(app *command.App, tool string, o host.Options, out string) (host.Call, error) {
	s, err := app.Settings()
	if err != nil {
		return host.Call{}, err
	}
	session, err := app.Session()
	if err != nil {
		return host.Call{}, err
	}
	c := host.Call{
		Name: tool, Caller: command.Caller, Session: session, Options: s.ForCall(o), Given: o.StepOptions(),
		KeepBinary: s.Agent, Render: app.Command, Filter: jq.InProcess{},
	}
	c.Given.Out, c.Given.File = out != "", out
	return c, nil
}

// callInto makes a call and writes the whole result to a file: the data of the answer is a [host.File]. A call that
// fails or is a dry run writes none. The answer is nil if the file cannot be written. The tool may be nil.
func callInto(
	ctx context.Context, h *call.Host, call host.Call, path string, tool *manifest.Tool,
) (*host.Answer, error) {
	call.Options.MaxBytes, call.KeepBinary = 0, false
	if call.Options.DryRun {
		call.Drain = false
		return h.Call(ctx, call)
	}
	file := &command.OutFile{Path: path, Raw: call.Drain, Filtered: call.Options.JQ != ""}
	defer file.Discard()
	if tool != nil {
		file.Returns = tool.Returns
	}
	if call.Options.JQ == "" { // a filter needs the whole result in memory
		call.Out = file
	}
	answer, err := h.Call(ctx, call)
	if err != nil {
		return answer, err
	}
	if answer.Written > 0 || answer.Raw {
		answer.Data, err = file.Done()
	} else {
		answer.Data, err = file.Whole(answer.Data)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}
