package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// runListen streams events to stdout, one JSON line each. The last line says why the stream ended. It exits with the
// code of a timeout if the event of --until did not come.
func runListen(ctx context.Context, app *App, opts command.ListenOptions) error {
	stream, err := command.Listen(ctx, app.deps, opts, app.printRecord)
	switch {
	case stream == nil:
		return err
	case stream.Answer.Err != nil:
		if code := stream.Answer.Err.Code; stream.Began && (code == host.Interrupted || code == host.Terminated) {
			_, _ = io.WriteString(app.Out, `{"end":"closed"}`+"\n")
		}
		return app.failed(stream.Answer)
	case err != nil:
		return err
	case opts.DryRun:
		return app.printEnvelope(app.deps.Envelope(stream.Answer), nil)
	}
	line, err := manifest.Marshal(stream.StreamEnd)
	if err != nil {
		return err
	}
	if err := app.printRecord(line); err != nil {
		return writeError(err)
	}
	if stream.Unmet {
		return &exitStatus{host.Errorf(host.Timeout, "").ExitCode()}
	}
	return nil
}

// maxTrigger limits the parameters of a trigger that are repeated in an error, in bytes.
const maxTrigger = 4 << 10

// callBesideListen returns the error of a call that was given beside --listen: the parameters of a trigger as options
// of their own, perhaps without --listen, or a tool in the place of the plugin. It leads to the stream that was meant,
// whose trigger is that call. It returns nil if the options are not such a call.
func (o *rootOptions) callBesideListen(ctx context.Context, at host.Address, words []string) error {
	call := o.CallOptions
	call.Words = words
	option := o.firstOf("params", "param")
	besideTrigger := at.Tool == nil && option != "" && o.trigger != "" && !strings.Contains(o.trigger, " ")
	var message string
	listen := ""
	switch {
	case len(o.listen) == 0 && besideTrigger:
		call.Tool = at.Plugin + "." + strings.TrimPrefix(o.trigger, at.Plugin+".")
		message, listen = "--trigger requires --listen EVENT", " --listen EVENT"
	case len(o.listen) == 0:
		return nil
	case at.Tool != nil && o.trigger == "":
		call.Tool = at.Name()
		message = fmt.Sprintf("--listen streams events and does not call %s; --trigger does", at.Name())
	case besideTrigger:
		call.Tool = at.Plugin + "." + strings.TrimPrefix(o.trigger, at.Plugin+".")
		message = fmt.Sprintf("--%s cannot be combined with --listen; parameters of the trigger follow its tool", option)
	default:
		return nil
	}
	e := host.Errorf(host.InvalidArgs, "%s", message)
	trigger, err := command.TriggerOf(ctx, o.app.deps, call)
	switch {
	case errors.Is(err, host.NotFound):
		return err
	case err != nil: // it is not known which call was meant
		e = e.WithNext("--trigger '" + local(at.Plugin, call.Tool) + " JSON'").WithSteps(host.DescribeStep(call.Tool, 0))
	case len(trigger) <= maxTrigger && manifest.CleanLine(trigger) == trigger:
		if line := o.again("params", "param", "trigger"); line != "" || listen != "" {
			e = e.WithNext("parley " + at.Plugin + listen + line + " --trigger " + shellQuote(trigger))
		}
	}
	return e
}

// again returns the options that were given, but for some, as words of a shell, each after a space. It returns "" if
// they have characters that should not be repeated.
func (o *rootOptions) again(except ...string) string {
	var line strings.Builder
	o.flags.Visit(func(f *pflag.Flag) {
		if slices.Contains(except, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(*texts); ok {
			values = *list
		}
		for _, v := range values {
			line.WriteString(" --" + f.Name)
			if f.NoOptDefVal == "" {
				line.WriteString(" " + shellQuote(v))
			} else if v != f.NoOptDefVal {
				line.WriteString("=" + shellQuote(v))
			}
		}
	})
	if manifest.CleanLine(line.String()) != strings.TrimSpace(line.String()) {
		return ""
	}
	return line.String()
}

// printRecord prints a JSON document as a line.
func (a *App) printRecord(record json.RawMessage) error {
	if a.OutTTY {
		record = manifest.EscapeJSON(record)
	}
	_, err := a.Out.Write(append(record, '\n'))
	return err
}
