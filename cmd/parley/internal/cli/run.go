package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// callFlags are the options of a call, and of the discovery that shares its command line.
type callFlags struct {
	params     string
	param      []string
	timeout    time.Duration
	maxBytes   int
	browser    string
	target     string
	onDialog   string
	isolate    string
	dryRun     bool
	sendAnyway bool
	jq         string
	out        string
	drain      bool
	all        bool

	listen  []string
	until   string
	max     int
	trigger string

	list     bool
	describe bool
	tier     int
	search   string
	diff     bool
	version  bool
}

// runs tells whether the options ask for a call rather than for discovery.
func (f *callFlags) runs() bool {
	return !f.list && !f.describe && !f.diff && f.search == "" && len(f.listen) == 0
}

// callOnly are the options that mean nothing without a tool.
var callOnly = []string{"params", "param", "dry-run", "jq", "out", "drain", "all", "send-anyway", "isolate"}

func (f *callFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.params, "params", "", "JSON, @FILE or - (stdin)")
	set.StringArrayVar(&f.param, "param", nil, "KEY=VALUE, KEY=@FILE, a.b=1")
	set.DurationVar(&f.timeout, "timeout", 0, "end the call after this long, such as 10s")
	set.IntVar(&f.maxBytes, "max-bytes", 0, "cut a larger result, saying so")
	set.StringVar(&f.browser, "browser", "", "which browser, by name")
	set.StringVar(&f.target, "target", "", "which page: id, part of its URL, or index")
	set.BoolVar(&f.dryRun, "dry-run", false, "validate and ask the policy, run nothing")
	set.StringVar(&f.jq, "jq", "", "filter the result")
	set.StringVar(&f.out, "out", "", "write to FILE, binary decoded")
	set.BoolVar(&f.drain, "drain", false, "with --out: read the stream that the result names")
	set.BoolVar(&f.all, "all", false, "cdp status and cdp close: every browser")
	set.StringVar(&f.onDialog, "on-dialog", "", "JavaScript dialogs: accept, dismiss or fail")
	set.StringVar(&f.isolate, "isolate", "", "process: run the plugin in one of its own")
	set.BoolVar(&f.sendAnyway, "send-anyway", false, "send what the protocol data does not know")
}

func (f *callFlags) addStream(set *pflag.FlagSet) {
	set.StringArrayVar(&f.listen, "listen", nil, "stream events that match, such as Network.*")
	set.StringVar(&f.until, "until", "", "with --listen: end after EVENT, or EVENT:JQ of its params")
	set.IntVar(&f.max, "max", 0, "with --listen: end after this many events")
	set.StringVar(&f.trigger, "trigger", "", "with --listen: call TOOL [JSON] once listening")
}

func (f *callFlags) options(cfg *command.Settings) (host.Options, error) {
	o := host.Options{
		Timeout: f.timeout, MaxBytes: f.maxBytes, Browser: f.browser, Target: f.target,
		DryRun: f.dryRun, SendAnyway: f.sendAnyway, OnDialog: f.onDialog, Isolate: f.isolate,
	}
	return cfg.Complete(o), o.Check()
}

func newCall(app *App) *cobra.Command {
	flags := &callFlags{}
	cmd := &cobra.Command{
		Use:               "call NAME [WORD...]",
		Short:             "Run a tool by its full name",
		Example:           `parley call text.hash --param text=hello`,
		ValidArgsFunction: app.completeQualified,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return missingWord("call", "NAME", "parley call text.hash --param text=hello")
			}
			app.deps.LiveBrowser = flags.browser
			h, err := app.deps.Host(cmd.Context())
			if err != nil {
				return err
			}
			find := h.Catalog().Find
			if flags.sendAnyway {
				find = h.Catalog().FindAnyway
			}
			at, err := find(args[0])
			if err != nil {
				return app.runUnknown(cmd.Context(), h, args[0])
			}
			return app.run(cmd.Context(), h, at, args[1:], flags)
		},
	}
	flags.add(cmd.Flags())
	app.completeCall(cmd)
	cmd.Flags().SortFlags = false
	return cmd
}

func missingWord(command, word, example string) *host.Error {
	return host.Errorf(host.InvalidArgs, "parley %s needs %s", command, word).WithNext(example)
}

// runUnknown makes the call of a tool that does not exist, so that it is refused and traced like any other.
func (a *App) runUnknown(ctx context.Context, h *host.Host, name string) error {
	answer, _ := h.Call(ctx, host.Call{Name: name, Caller: "cli", Session: a.Env("PARLEY_SESSION")})
	return a.failed(answer)
}

// run makes a call from the command line and prints what comes of it.
func (a *App) run(ctx context.Context, h *host.Host, at host.Address, words []string, f *callFlags) error {
	cfg, err := a.deps.Settings()
	if err != nil {
		return err
	}
	options, err := f.options(cfg)
	if err != nil {
		return err
	}
	call := host.Call{
		Name: at.Name(), Caller: "cli", Session: a.Env("PARLEY_SESSION"), Options: options,
		Log:      func(level int, message string) { a.debugf("%s: %s", at.Plugin, message) },
		Progress: a.progress(),
	}
	if at.Tool != nil {
		if call.Params, err = a.buildParams(ctx, at.Tool, words, f); err != nil {
			call.Invalid = host.AsError(err)
		}
	}
	if f.out != "" {
		call.Options.MaxBytes = 0 // the file takes it whole
	}
	var file *outFile
	if f.out != "" && !f.dryRun {
		file = &outFile{path: f.out, raw: f.drain}
		defer file.discard()
	}
	switch {
	case f.jq != "" && f.drain:
		return host.Errorf(host.InvalidArgs, "--jq filters JSON, and --drain writes the content of a stream").WithNext("leave one of them out")
	case f.drain && f.out == "":
		return host.Errorf(host.InvalidArgs, "--drain needs --out FILE").WithNext("--drain --out page.pdf")
	case f.jq != "":
		if call.Filter, err = jqFilter(f.jq, false); err != nil {
			return err
		}
	case file != nil:
		call.Out, call.Drain = file, f.drain
		if at.Tool != nil {
			file.returns = at.Tool.Returns
		}
	}
	answer, _ := h.Call(ctx, call)
	if answer.Err != nil {
		return a.failed(answer)
	}
	env := a.deps.Envelope(answer)
	if answer.Cut {
		env.Warnings = append(env.Warnings, "--out FILE writes the whole result")
	}
	switch {
	case file == nil:
	case answer.Written > 0 || answer.Raw:
		env.Data, err = file.done()
	default:
		env.Data, err = file.whole(answer.Data)
	}
	if err != nil {
		return err
	}
	return a.envelope(env, nil)
}

// progress shows how far a call is, on a terminal only.
func (a *App) progress() func(done, total float64, message string) {
	if !a.ErrTTY || a.json {
		return nil
	}
	return func(done, total float64, message string) {
		if total > 0 {
			fmt.Fprintf(a.Err, "%3.0f%% %s\n", 100*done/total, manifest.CleanLine(message))
		} else {
			fmt.Fprintf(a.Err, "%s\n", manifest.CleanLine(message))
		}
	}
}

// jqFilter compiles a jq expression. One output is the data; none or several become an array, but none is nothing in a stream.
func jqFilter(expr string, inStream bool) (func(json.RawMessage) (json.RawMessage, error), error) {
	code, err := compileJQ(expr)
	if err != nil {
		return nil, jqError("--jq ", expr, err).WithNext(`a jq expression, such as --jq '.items[0].name'`)
	}
	return func(data json.RawMessage) (json.RawMessage, error) {
		outputs, err := filter(code, expr, data)
		switch {
		case err != nil:
			return nil, err
		case len(outputs) == 1:
			return gojq.Marshal(outputs[0])
		case len(outputs) == 0 && inStream:
			return nil, nil
		}
		return gojq.Marshal(outputs)
	}, nil
}

func compileJQ(expr string) (*gojq.Code, error) {
	query, err := gojq.Parse(expr)
	if err != nil {
		return nil, err
	}
	return gojq.Compile(query)
}

func jqError(option, expr string, err error) *host.Error {
	return host.Errorf(host.InvalidArgs, "%s%s: %s", option, shellQuote(manifest.CleanLine(expr)), manifest.CleanLine(err.Error()))
}

func filter(code *gojq.Code, expr string, data json.RawMessage) ([]any, error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var input any
	if err := dec.Decode(&input); err != nil {
		return nil, err
	}
	outputs := []any{}
	for iter := code.Run(input); ; {
		v, ok := iter.Next()
		if !ok {
			break
		}
		if err, failed := v.(error); failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				break
			}
			return nil, jqError("--jq ", expr, err)
		}
		outputs = append(outputs, v)
	}
	return outputs, nil
}
