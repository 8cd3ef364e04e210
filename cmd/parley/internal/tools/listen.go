package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// runListen streams events to stdout, one JSON line each. The last line says why the stream ended. It exits with the
// code of a timeout if the event of --until did not come.
func runListen(ctx context.Context, app *command.App, plugin string, opts *RootOptions) error {
	l, answer, err := listen(ctx, app, plugin, opts)
	switch {
	case answer == nil:
		return err
	case answer.Err != nil:
		if code := answer.Err.Code; l.isListening && (code == host.Interrupted || code == host.Terminated) {
			_, _ = io.WriteString(app.Out, `{"end":"closed"}`+"\n")
		}
		return app.Failed(answer)
	case opts.DryRun:
		return app.PrintEnvelope(app.Envelope(answer), nil)
	}
	if err := command.WriteJSON(app.Out, l.ended, false); err != nil {
		return command.WriteError(err)
	}
	if opts.Until != "" && l.ended.End != "until" {
		return &command.ExitStatus{Code: host.Errorf(host.Timeout, "").ExitCode()}
	}
	return nil
}

// maxTrigger limits the size of a trigger that an error repeats, in bytes.
const maxTrigger = 4 << 10

// callBesideListen returns the error for a call that was given together with --listen: the parameters of a trigger as
// separate options, perhaps without --listen, or a tool in place of the plugin. The error leads to the intended
// stream, which has that call as its trigger. callBesideListen returns nil if the options are not such a call.
func (o *RootOptions) callBesideListen(ctx context.Context, at host.Address, words []string) error {
	call := o.CallOptions
	call.Words = words
	option := o.FirstOf("params", "param")
	besideTrigger := at.Tool == nil && option != "" && o.Trigger != "" && !strings.Contains(o.Trigger, " ")
	call.Tool = at.Plugin + "." + strings.TrimPrefix(o.Trigger, at.Plugin+".")
	message, listen := "", ""
	switch {
	case len(o.Listen) == 0 && besideTrigger:
		message, listen = "--trigger requires --listen EVENT", " --listen EVENT"
	case len(o.Listen) == 0:
		return nil
	case at.Tool != nil && o.Trigger == "":
		call.Tool = at.Name()
		message = fmt.Sprintf("--listen streams events and does not call %s; --trigger does", at.Name())
	case besideTrigger:
		message = fmt.Sprintf("--%s cannot be combined with --listen; parameters of the trigger follow its tool", option)
	default:
		return nil
	}
	e := host.Errorf(host.InvalidArgs, "%s", message)
	trigger, err := triggerOf(ctx, o.app, call)
	switch {
	case errors.Is(err, host.NotFound):
		return err
	case err != nil: // it is unclear which call was meant
		e = e.WithNext("--trigger '" + local(at.Plugin, call.Tool) + " JSON'").WithSteps(step.Describe(call.Tool, 0))
	case len(trigger) <= maxTrigger && manifest.CleanLine(trigger) == trigger:
		if line := o.again("params", "param", "trigger"); line != "" || listen != "" {
			e = e.WithNext("parley " + at.Plugin + listen + line + " --trigger " + command.ShellQuote(trigger))
		}
	}
	return e
}

// again returns the given options, except some, as words of a shell, each after a space. It returns "" if they
// contain characters that should not be repeated.
func (o *RootOptions) again(except ...string) string {
	var line strings.Builder
	o.Flags.Visit(func(f *pflag.Flag) {
		if slices.Contains(except, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(*command.Texts); ok {
			values = *list
		}
		for _, v := range values {
			line.WriteString(" --" + f.Name)
			if f.NoOptDefVal == "" {
				line.WriteString(" " + command.ShellQuote(v))
			} else if v != f.NoOptDefVal {
				line.WriteString("=" + command.ShellQuote(v))
			}
		}
	})
	return command.When(manifest.CleanLine(line.String()) == strings.TrimSpace(line.String()), line.String())
}

// printRecord prints a JSON document as a line.
func printRecord(a *command.App, record json.RawMessage) error {
	if a.OutTTY {
		record = manifest.EscapeJSON(record)
	}
	return command.WriteJSON(a.Out, record, false)
}

const (
	// maxListen limits a stream without --timeout.
	maxListen = 24 * time.Hour
	// conditionTime limits the evaluation of --until's condition for one event.
	conditionTime = time.Second
	// listenGrace is how much longer than its stream a call may take.
	listenGrace = 10 * time.Second
	// triggerGrace is how long a stream that has ended waits for its trigger to return.
	triggerGrace = 2 * time.Second
	// crashGrace is how long a stream continues after its trigger crashed the page or was blocked by a dialog, so that
	// it includes the events about that.
	crashGrace = time.Second
)

// streamEnd is the last line of a stream.
type streamEnd struct {
	End string `json:"end"` // why the stream ended
}

// listen prints events of a plugin, one record each, until one of the options ends the stream. If there is no answer,
// the options are invalid.
func listen(ctx context.Context, app *command.App, plugin string, o *RootOptions) (*listening, *host.Answer, error) {
	h, principal, err := app.HostPrincipal(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err := h.Catalog().FindIn(plugin, "events"); err != nil {
		return nil, nil, host.Errorf(host.InvalidArgs, "%s has no events to listen to", plugin).
			WithSteps(step.List(plugin))
	}
	if err := option.Check(o.Options()); err != nil {
		return nil, nil, err
	}
	settings, _ := app.Settings() // the host depends on the settings, so they are valid
	options := settings.Complete(o.Options())
	options.JQ = ""
	l := &listening{app: app, host: h, plugin: plugin, until: o.Until}
	// The parameters of the trigger follow it after a space, in any form of --params.
	if tool, params, _ := strings.Cut(strings.TrimSpace(o.Trigger), " "); tool != "" {
		l.trigger = &host.Call{Name: plugin + "." + tool, Principal: principal, Options: options}
		l.trigger.Options.Timeout = o.Timeout
		if l.trigger.Params, err = readParams(ctx, app, strings.TrimSpace(params), 0); err != nil {
			return nil, nil, err
		}
	}
	until, condition, conditional := strings.Cut(o.Until, ":")
	if conditional && until == "" {
		return nil, nil, host.Errorf(host.InvalidArgs, "--until: the event is missing; expected EVENT:JQ")
	}
	call := eventCall(plugin, o.Listen, until, o.Max, o.Timeout, principal, options)
	ctx, l.cancel = context.WithCancelCause(ctx)
	defer l.cancel(nil)
	emit := func(record json.RawMessage) error { return printRecord(app, record) }
	if o.JQ != "" {
		if corrected, err := jq.Check(o.JQ); corrected != "" {
			return nil, nil, host.AsError(err).WithSteps(step.Operator(step.OpSystem, "--jq", corrected))
		}
		each, err := jq.Compile(o.JQ)
		if err != nil {
			return nil, nil, err
		}
		emit = func(record json.RawMessage) error {
			outputs, err := each.Outputs(ctx, record)
			if err != nil || len(outputs) == 0 { // a filter without output drops the record
				return err
			}
			filtered, err := jq.Join(outputs)
			if err != nil {
				return err
			}
			return printRecord(app, filtered)
		}
	}
	if conditional || l.trigger != nil && o.Until != "" {
		if l.last, err = newLastEvent(ctx, condition, conditional, l.trigger != nil); err != nil {
			return nil, nil, err
		}
		call.Sink.Last = l.last.isLast
	}
	call.Sink.Event = func(e job.Event) error {
		switch e.Kind {
		case job.EventStarted:
			l.began()
		case job.EventRecord:
			return emit(e.Record)
		}
		return nil
	}
	l.triggered, l.over = make(chan struct{}), make(chan struct{})
	l.triggering, l.abandon = context.WithCancel(ctx)
	defer l.abandon()
	answer, err := h.Call(ctx, call)
	close(l.over)
	if err == nil && !options.DryRun {
		l.end(answer)
	}
	return l, answer, err
}

// eventCall returns the call that streams events of a plugin. It streams the events in match, and ends with an event
// named until, after max events, or after patience. Zero values are not limits.
func eventCall(plugin string, match []string, until string, max int, patience time.Duration, principal caller.Principal,
	options job.Options) host.Call {
	params := map[string]any{"match": match}
	if until != "" {
		params["until"] = until
	}
	if max > 0 {
		params["max"] = max
	}
	options.Timeout = maxListen
	if patience > 0 {
		params["timeout_ms"] = patience.Milliseconds()
		options.Timeout = patience + listenGrace
	}
	return host.Call{Name: plugin + ".events", Params: jsontext.Marshal(params), Principal: principal, Options: options,
		Sink: host.Sink{Wants: job.Wants{Records: true}}}
}

// listening is a stream that is running.
type listening struct {
	app     *command.App
	host    *call.Host
	plugin  string
	until   string     // as given by the caller
	trigger *host.Call // nil if there is none
	last    *lastEvent // nil if the plugin alone decides when to end

	cancel      context.CancelCauseFunc // ends the stream
	isListening bool
	over        chan struct{} // closed when the stream has ended
	triggering  context.Context
	abandon     context.CancelFunc // ends the trigger
	triggered   chan struct{}      // closed when the trigger has returned
	refused     *host.Error        // why the trigger did not run
	ended       streamEnd
}

// began calls the trigger, once the plugin listens.
func (l *listening) began() {
	l.isListening = true
	go func() {
		defer close(l.triggered)
		if l.trigger == nil {
			return
		}
		answer, _ := l.host.Call(l.triggering, *l.trigger)
		if l.triggering.Err() != nil {
			return // the stream has ended
		}
		if l.refused = l.checkTrigger(answer.Err); l.refused != nil {
			if l.refused.Code == host.TargetCrashed || l.refused.Code == host.Busy {
				await(l.over, crashGrace)
			}
			l.cancel(l.refused)
		}
	}()
}

// checkTrigger returns the error of a trigger that was refused or could not run; it ends the stream. The failure of a
// trigger that did run, such as a navigation to an unknown host, may be the subject of the stream. It is reported,
// and the stream continues.
func (l *listening) checkTrigger(failed *host.Error) *host.Error {
	if failed != nil && failed.Tool != nil && failed.Protocol == nil {
		l.app.Notice("the trigger: " + failed.Message)
		return nil
	}
	return failed
}

// end waits for the trigger and reports how the stream ended.
func (l *listening) end(answer *host.Answer) {
	if l.isListening {
		if !await(l.triggered, triggerGrace) {
			l.abandon()
			<-l.triggered
			l.app.Notice("the trigger: " + strings.TrimPrefix(l.trigger.Name, l.plugin+".") +
				" had not returned when the stream ended, and was abandoned")
		}
		if l.refused != nil {
			l.app.Notice("the trigger: " + l.refused.Message) // the stream itself ended as requested
		}
	}
	for _, warning := range answer.Warnings {
		l.app.Notice(warning)
	}
	_ = json.Unmarshal(answer.Data, &l.ended)
	switch {
	case l.until == "" || l.ended.End == "until" || l.last == nil:
	case l.last.failed != nil:
		l.app.Notice("the condition of --until could not be evaluated: " + l.last.failed.Error())
	case l.last.unmet:
		l.app.Notice("no event that --until names met its condition, which applies to the event's params alone, as in " +
			conditionSample)
	}
}

// await waits until done is closed, at most for patience, and reports whether it was closed.
func await(done <-chan struct{}, patience time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(patience):
		return false
	}
}

// triggerOf returns the value of --trigger that makes a call: its tool, and its parameters as JSON, or as given with
// --params @FILE or -. The parameters are those in o, or their only possible meaning. The error says that the tool
// does not exist, or that the meaning of the parameters is unclear.
func triggerOf(ctx context.Context, app *command.App, o CallOptions) (string, error) {
	h, err := app.Host(ctx)
	if err != nil {
		return "", err
	}
	at, err := h.Catalog().Find(o.Tool)
	if err != nil {
		return "", err
	}
	tool := strings.TrimPrefix(at.Name(), at.Plugin+".")
	fromInput := o.Params == "-" || strings.HasPrefix(o.Params, "@")
	if at.Tool == nil || fromInput && len(o.Set)+len(o.Words) == 0 {
		return strings.TrimSpace(tool + " " + o.Params), nil
	}
	params, err := buildParams(ctx, app, at.Tool, &o)
	if err == nil {
		if e := advice.CheckCall(h.Names(), host.Call{Name: o.Tool, Params: params}); e != nil {
			err = e
		}
	}
	if err != nil {
		e := host.AsError(err)
		if all, _ := h.Names().Meant(at.Name(), map[string]any{}, o.Values()); o.Params == "" && len(o.Set) == 0 &&
			len(all) > 0 && all[0].Tool == at.Name() {
			e.Corrected = jsontext.Marshal(all[0].Params)
		}
		if e.Corrected == nil || at.Tool.Effect == manifest.EffectDestructive {
			return "", e
		}
		params = e.Corrected
	}
	if text := string(manifest.EscapeJSON(manifest.CompactJSON(params))); text != "" && text != "{}" {
		return tool + " " + text, nil
	}
	return tool, nil
}

// lastEvent decides which event ends a stream.
type lastEvent struct {
	ctx       context.Context
	condition *jq.Expression // on the event's parameters; nil: any event
	fresh     bool           // replayed events do not count
	failed    error          // the latest error of evaluating the condition
	unmet     bool           // an event has not met the condition
}

// conditionSample is an example of a condition for --until.
const conditionSample = ".response.status == 404"

func newLastEvent(ctx context.Context, condition string, conditional, fresh bool) (*lastEvent, error) {
	l := &lastEvent{ctx: ctx, fresh: fresh}
	if !conditional {
		return l, nil
	}
	var err error
	if l.condition, err = jq.Compile(condition); err != nil {
		e := host.AsError(err)
		e.Message = "--until EVENT:JQ: " + e.Message
		return nil, e.WithNext("--until 'Network.responseReceived:" + conditionSample + "'")
	}
	return l, nil
}

// isLast reports whether a record is the last one: its condition has an output other than null and false.
func (l *lastEvent) isLast(record json.RawMessage) bool {
	var event struct {
		Params   any  `json:"params"`
		Replayed bool `json:"replayed"`
	}
	if err := json.Unmarshal(record, &event); err != nil || event.Replayed && l.fresh {
		return false
	}
	if l.condition == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(l.ctx, conditionTime)
	defer cancel()
	met, err := l.condition.Holds(ctx, event.Params)
	if err != nil {
		l.failed = err
		return false
	}
	l.unmet = l.unmet || !met
	return met
}
