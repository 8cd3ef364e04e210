package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// callOnly are the options that have a meaning only with a tool.
var callOnly = []string{"params", "param", "dry-run", "jq", "out", "drain", "all", "send-anyway", "isolate"}

var callCommand = &command.Command[*callOptions]{
	Use: "call NAME [WORD...]", Run: runCall, Words: command.CompleteQualified,
	Short:   "Run a tool by its whole name",
	Example: `parley call text.hash --param text=hello`,
	Finish:  command.CompleteCall,
}

type callOptions struct {
	Name string   `word:""`
	Rest []string `word:""`
	CallOptions
	Describe bool `flag:"describe" usage:"its docs"`
	Tier     int  `flag:"tier" default:"2" usage:"with --describe: how much, 1 to 3"`
	command.Limited
}

// runCall calls a tool, or documents it.
func runCall(ctx context.Context, app *command.App, opts *callOptions) error {
	if !opts.Describe {
		if name := command.FirstSet(opts.Flags, "tier", "max-tokens"); name != "" {
			return host.Errorf(host.InvalidArgs, "--%s requires --describe", name).
				WithSteps(step.Describe(opts.Name, opts.Tier))
		}
		opts.Tool, opts.Words = opts.Name, opts.Rest
		return RunCall(ctx, app, &opts.CallOptions)
	}
	if name := command.FirstSet(opts.Flags, callOnly...); name != "" {
		return host.Errorf(host.InvalidArgs, "--%s cannot be combined with --describe", name).
			WithSteps(step.Describe(opts.Name, 0))
	}
	if err := opts.Limit(app, opts.Flags); err != nil {
		return err
	}
	return runDescribe(ctx, app, opts.Name, opts.Tier)
}

// RunCall calls a tool and prints the answer.
func RunCall(ctx context.Context, app *command.App, opts *CallOptions) error {
	app.LiveBrowser = opts.Browser
	app.Signaled.Brief = true
	answer, err := callTool(ctx, app, *opts)
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
	Tool  string       // qualified
	At    host.Address // of Tool, if it has been looked up
	Words []string     // values of the tool's positional parameters
	Trace bool         // show where a plugin crashes; see [host.Error]
	Flags *pflag.FlagSet

	Params   string        `flag:"params" usage:"JSON, @FILE or -" once:"one object has all parameters"`
	Set      []string      `flag:"param" usage:"KEY=VALUE, a.b=@FILE, @-"` // each is added to Params and Words
	Timeout  time.Duration `flag:"timeout" usage:"end the call after this long, such as 10s"`
	MaxBytes int           `flag:"max-bytes" usage:"cut a larger result and warn"`
	place
	DryRun     bool   `flag:"dry-run" usage:"validate and check the policy, run nothing"`
	JQ         string `flag:"jq" usage:"jq filter"`
	Out        string `flag:"out" usage:"to FILE, decoded"` // receives the whole result; "" means none
	Drain      bool   `flag:"drain" usage:"with --out: read the stream that the result names"`
	All        bool   `flag:"all" usage:"with cdp status and cdp close: all browsers"` // the parameter all=true
	OnDialog   string `flag:"on-dialog" usage:"JavaScript dialogs: accept, accept=TEXT, dismiss or fail"`
	Wait       string `flag:"wait" usage:"if the page navigates: wait for load, idle or none"`
	Isolate    string `flag:"isolate" usage:"process: run the plugin in another process; call: in one of its own"`
	SendAnyway bool   `flag:"send-anyway" usage:"send a command that the protocol data does not have"`
}

// Values returns the words as parts of a call.
func (o *CallOptions) Values() []any {
	return command.Map(o.Words, func(word string) any { return word })
}

// place says where in the browsers a call acts.
type place struct {
	Browser string `flag:"browser" usage:"use the browser of this name"`
	Target  string `flag:"target" usage:"use this page: its id, part of its URL, or index"`
	Context string `flag:"context" usage:"use a further browser context of the session, of this name"`
}

// Options returns the options in the host's form.
func (o *CallOptions) Options() job.Options {
	return job.Options{
		Timeout: o.Timeout, MaxBytes: o.MaxBytes, Unlimited: o.MaxBytes == 0 && o.Flags.Changed("max-bytes"),
		Place: step.Place(o.place), DryRun: o.DryRun, JQ: o.JQ, OnDialog: o.OnDialog, Wait: o.Wait, Isolate: o.Isolate,
		SendAnyway: o.SendAnyway,
	}
}

// callTool runs a tool. With Out, the data of the answer is a [session.File].
//
// If the call was made, the answer identifies it, even if the call failed, for example because the tool does not
// exist. The answer is nil if the options are invalid or the file cannot be written.
func callTool(ctx context.Context, app *command.App, o CallOptions) (*host.Answer, error) {
	h, principal, err := app.HostPrincipal(ctx)
	if err != nil {
		return nil, err
	}
	options := o.Options()
	call := hostCall(app, o.Tool, principal, options, o.Out)
	call.Sink.Drain, call.Given.Drain = o.Drain, o.Drain
	at := o.At
	if at.Tool == nil {
		find := command.Either(o.SendAnyway, h.Catalog().FindAnyway, h.Catalog().Find)
		if at, err = find(o.Tool); err != nil { // the host refuses the call and records it
			return h.Call(ctx, call)
		}
	}
	call.At = at
	call.Sink.Wants.Progress, call.Sink.Wants.Trace = app.Progress() != nil, o.Trace || app.Debug
	if err := option.Check(options); err != nil {
		return nil, err
	}
	if at.Tool != nil {
		if h.Names().Conflicts(at, o.Values()) {
			return nil, host.Errorf(host.InvalidArgs, "%q after %s is ambiguous: other tools read these words "+
				"differently; a value goes into --param", manifest.CleanValue(strings.Join(o.Words, " ")), at.Tool.Name).
				WithSteps(step.Describe(at.Name(), 0))
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
	answer, err := callInto(ctx, h, call)
	if answer != nil && answer.Cut {
		if _, missing := app.Parley().Sessions().FindResult(call.Principal.Session, answer.CallID); missing == nil {
			answer.Warnings = append(answer.Warnings,
				"parley result prints the whole result, with --jq a part of it; --out FILE writes it")
		}
	}
	return answer, err
}

// hostCall returns a call of a tool, with the configured values in place of zero options. out is the file for the
// result, "" for none. The app must have a host already.
func hostCall(app *command.App, tool string, principal caller.Principal, o job.Options, out string) host.Call {
	s, _ := app.Settings() // the host depends on the settings, so they are valid
	c := host.Call{
		Name: tool, Principal: principal, Options: s.ForCall(o), Given: o.StepOptions(),
		KeepBinary: s.Agent, Render: app.Command, Filter: jq.InProcess{},
	}
	c.Given.Out, c.Given.File = out != "", out
	plugin, _, _ := strings.Cut(strings.ReplaceAll(tool, "__", "."), ".")
	c.Sink.Wants.Log = true
	c.Sink.Event = func(e job.Event) error {
		switch e.Kind {
		case job.EventProgress:
			app.Progress()(e.Done, e.Total, e.Message)
		case job.EventLog:
			app.Debugf("%s: %s", plugin, e.Message)
		}
		return nil
	}
	return c
}

// callInto makes a call. If the caller gave a file, it writes the whole result to it, and the data of the answer is a
// [session.File]. It writes no file for a call that fails or is a dry run. The answer is nil if the file cannot be
// written.
func callInto(ctx context.Context, h *call.Host, call host.Call) (*host.Answer, error) {
	if call.Given.File == "" {
		return h.Call(ctx, call)
	}
	call.Options.MaxBytes, call.KeepBinary = 0, false
	file := &command.OutFile{Path: call.Given.File, Raw: call.Sink.Drain, Filtered: call.Options.JQ != ""}
	if err := file.Check(); err != nil {
		return nil, err
	}
	if call.Options.DryRun {
		call.Sink.Drain = false
		return h.Call(ctx, call)
	}
	defer file.Discard()
	if call.At.Tool != nil {
		file.Returns = call.At.Tool.Returns
	}
	if call.Options.JQ == "" { // a filter needs the whole result in memory
		report := call.Sink.Event
		call.Sink.Wants.Output, call.Sink.Event = true, func(e job.Event) error {
			if e.Kind == job.EventOutput {
				_, err := file.Write(e.Output)
				return err
			}
			return report(e)
		}
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

var codeCommand = &command.Command[*codeOptions]{
	Use: "code FILE|-", Run: runCode,
	Short: "Run JavaScript that calls tools",
	Long: "The program is JavaScript, the body of an async function. It calls tools as you would, in the sandbox:\n" +
		"await tools.text.hash({text: inputs.text}). What it returns is the result.",
	Example: "parley code program.js",
}

// codeOptions say which program to run. Params and Set are the program's inputs.
type codeOptions struct {
	// Path is the file with the program, - for [App.Input].
	Path     string `word:""`
	Flags    *pflag.FlagSet
	Params   string        `flag:"params" usage:"inputs: JSON, @FILE or - (stdin)" once:"one object has all inputs"`
	Set      []string      `flag:"param" usage:"an input: KEY=VALUE, KEY=@FILE, a.b=1"`
	Timeout  time.Duration `flag:"timeout" usage:"end the program after this long, such as 10s"`
	MaxBytes int           `flag:"max-bytes" usage:"cut a larger result and warn"`
	place
	JQ  string `flag:"jq" usage:"jq filter"`
	Out string `flag:"out" usage:"to FILE, decoded"`
}

// runCode runs a JavaScript program, by js.run, and prints what it returned.
func runCode(ctx context.Context, app *command.App, opts *codeOptions) error {
	source, err := readProgram(ctx, app, opts)
	if err != nil {
		return err
	}
	inputs, err := readParams(ctx, app, opts.Params, opts.Timeout)
	if err != nil {
		return err
	}
	params := jsontext.Marshal(map[string]any{"source": string(source)})
	if len(inputs) > 0 {
		params = append(append(append(params[:len(params)-1], `,"inputs":`...), inputs...), '}')
	}
	call := &CallOptions{Tool: "js.run", Params: string(params), Out: opts.Out, Flags: opts.Flags,
		Timeout: opts.Timeout, MaxBytes: opts.MaxBytes, place: opts.place, JQ: opts.JQ}
	call.Set = command.Map(opts.Set, func(input string) string { return "inputs." + input })
	return RunCall(ctx, app, call)
}

func readProgram(ctx context.Context, app *command.App, o *codeOptions) ([]byte, error) {
	if o.Path == "-" {
		if o.Params == "-" {
			return nil, host.Errorf(host.InvalidArgs, "the program and its inputs cannot both come from the standard input").
				WithNext("parley code program.js --params -")
		}
		return readParams(ctx, app, "-", o.Timeout)
	}
	const limit = 1 << 20 // js.run reports a program that is too long
	source, err := command.ReadValue(ctx, o.Path, limit)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the program: %s; expected a file with JavaScript, or - for "+
			"the standard input", manifest.CleanLine(err.Error()))
	}
	return source, nil
}

var resultCommand = &command.Command[*resultOptions]{
	Use: "result ID", Run: runResult, Words: command.CompleteResults,
	Short: "Print the whole of a cut result",
	Long: "ID is that of the call, as the answer names it in next. The session keeps its last results for a day, and " +
		"so\ndo all calls without a session.",
	Example: "parley result c0123456789abcdef --jq '.nodes | length'\nparley result c0123456789abcdef --out page.json",
}

// runResult prints the whole result of a call of the current session that was cut. With Out, and for a binary result,
// the result is a [session.File]. The error is not_found if nothing is stored for the call.
func runResult(ctx context.Context, app *command.App, opts *resultOptions) error {
	if err := checkOut(opts.Out); opts.Flags.Changed("out") && err != nil {
		return err
	}
	sessions := app.Parley().Sessions()
	principal, err := app.Principal()
	if err != nil {
		return err
	}
	kept, err := sessions.FindResult(principal.Session, opts.ID)
	if err != nil {
		return noResult(opts.ID, sessions.ResultIDs(principal.Session))
	}
	if !kept.JSON {
		return copyOut(app, kept.Path, opts)
	}
	whole, err := sessions.Result(principal.Session, opts.ID)
	if err != nil {
		return noResult(opts.ID, nil)
	}
	data := json.RawMessage(whole)
	if opts.JQ != "" {
		if data, err = filterKept(ctx, app, opts, data); err != nil {
			return err
		}
	}
	if opts.Out != "" {
		file := &command.OutFile{Path: opts.Out, Filtered: opts.JQ != ""}
		defer file.Discard()
		if at, err := app.Find(kept.Tool); err == nil && at.Tool != nil {
			file.Returns = at.Tool.Returns
		}
		if data, err = file.Whole(data); err != nil {
			return err
		}
	}
	return app.Print(data, nil, nil)
}

// checkOut rejects a value of --out that is not a file name.
func checkOut(out string) error {
	if out != "" && out != "-" {
		return nil
	}
	return host.Errorf(host.InvalidArgs, "--out requires the name of a file, got %q", out).
		WithNext("--out page.png, or --out /dev/stdout")
}

// resultOptions are the options for reading a stored result.
type resultOptions struct {
	Flags *pflag.FlagSet
	ID    string `word:""` // the call's id
	// filters the result; "" leaves it as it is
	JQ string `flag:"jq" usage:"jq filter"`
	// a file that takes the result, decoded if it is binary; "" means none
	Out string `flag:"out" usage:"to FILE, decoded"`
}

// filterKept filters a stored result, within the time limit of a call.
func filterKept(ctx context.Context, app *command.App, o *resultOptions, data json.RawMessage) (json.RawMessage,
	error) {
	corrected, err := jq.Check(o.JQ)
	if err != nil {
		e := host.AsError(err)
		if corrected != "" {
			e = e.WithSteps(step.Operator(step.OpResult, o.ID, "--jq", corrected))
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

// copyOut copies binary content to the file of o, and prints it as a [session.File]. Without Out it prints the stored
// file.
func copyOut(app *command.App, path string, o *resultOptions) error {
	if o.JQ != "" {
		return host.Errorf(host.InvalidArgs, "--jq filters JSON, and the result of call %s is binary",
			manifest.CleanLine(o.ID)).WithSteps(step.Operator(step.OpResult, o.ID))
	}
	content, err := os.Open(path)
	if err != nil {
		return host.Errorf(host.NotFound, "%s", manifest.CleanLine(err.Error()))
	}
	defer content.Close()
	if o.Out != "" {
		file := &command.OutFile{Path: o.Out, Raw: true}
		defer file.Discard()
		if _, err := io.Copy(file, content); err != nil {
			return err
		}
		data, err := file.Done()
		if err != nil {
			return err
		}
		return app.Print(data, nil, nil)
	}
	head := make([]byte, command.HeadSize)
	n, _ := io.ReadFull(content, head)
	info, err := content.Stat()
	if err != nil {
		return err
	}
	return app.Print(session.File{Out: path, Bytes: info.Size(), MIME: session.MediaType(head[:n], "")}, nil, nil)
}

// noResult returns the error for an id with which nothing is stored, with the nearest ids that have a result.
func noResult(id string, kept []string) *host.Error {
	e := host.Errorf(host.NotFound,
		"no result is kept for call %q in this session: results that were cut are kept for a day, the last %d of a session",
		manifest.Clip(manifest.CleanValue(id), 80), session.MaxResults)
	e.DidYouMean = command.Nearest(id, kept)
	return e.WithNext("make the call again; its option --out FILE writes the whole result", "parley help result")
}
