package command

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/manifest"
)

const (
	// maxListen limits a stream without --timeout.
	maxListen = 24 * time.Hour
	// conditionTime limits the evaluation of --until's condition for one event.
	conditionTime = time.Second
	// listenGrace is how much longer than its stream a call may take.
	listenGrace = 10 * time.Second
	// triggerGrace is how long a stream that has ended waits for its trigger to return.
	triggerGrace = 2 * time.Second
	// crashGrace is how long a stream goes on after its trigger crashed the page or was blocked by a dialog, so that it
	// still carries the events about that.
	crashGrace = time.Second
)

// ListenOptions are the options of a stream of events.
type ListenOptions struct {
	Plugin       string
	Match        []string // events, such as Network.*
	host.Options          // JQ filters each record
	Until        string   // end after this EVENT, or EVENT:JQ for one whose params meet a condition; "" means none
	Max          int      // end after this many events; 0 means no limit
	Trigger      string   // call this TOOL, with its parameters after a space, once listening; "" means none
}

// StreamEnd is the last line of a stream.
type StreamEnd struct {
	End string `json:"end"` // why the stream ended
}

// Stream is a stream that has ended.
type Stream struct {
	Answer *host.Answer
	Began  bool // events were being listened to
	StreamEnd
	Unmet bool // the event of Until did not come
}

// Listen streams events of a plugin to emit, one record each, until one of the options ends the stream. It returns the
// stream also if the call failed; then the error is that of its answer. Without a stream, the options are invalid.
func Listen(ctx context.Context, d *Deps, o ListenOptions, emit func(record json.RawMessage) error) (*Stream, error) {
	h, err := d.Host(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := h.Catalog().FindIn(o.Plugin, "events"); err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s has no events to listen to", o.Plugin).
			WithSteps(host.ListStep(o.Plugin))
	}
	settings, err := d.Settings()
	if err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	options := settings.Complete(o.Options)
	session, err := d.Session()
	if err != nil {
		return nil, err
	}
	options.JQ = ""
	l := &listening{deps: d, host: h, session: session, options: o, triggerOptions: options}
	l.triggerOptions.Timeout = o.Timeout
	if l.trigger, l.triggerParams, err = d.readTrigger(ctx, o.Trigger); err != nil {
		return nil, err
	}
	params := map[string]any{"match": o.Match}
	until, condition, conditional := strings.Cut(o.Until, ":")
	if o.Until != "" {
		params["until"] = until
	}
	if o.Max > 0 {
		params["max"] = o.Max
	}
	options.Timeout = maxListen
	if o.Timeout > 0 {
		params["timeout_ms"] = o.Timeout.Milliseconds()
		options.Timeout = o.Timeout + listenGrace
	}
	call := host.Call{
		Name: o.Plugin + ".events", Caller: Caller, Session: session, Options: options, Started: l.began, Emit: emit,
	}
	if call.Params, err = manifest.Marshal(params); err != nil {
		return nil, err
	}
	ctx, l.cancel = context.WithCancelCause(ctx)
	defer l.cancel(nil)
	if o.JQ != "" {
		if corrected, err := jq.Check(o.JQ); corrected != "" {
			return nil, host.AsError(err).WithSteps(host.OperatorStep(host.OpSystem, "--jq", corrected))
		}
		each, err := jq.Compile(o.JQ)
		if err != nil {
			return nil, err
		}
		call.Emit = func(record json.RawMessage) error {
			outputs, err := each.Outputs(ctx, record)
			if err != nil || len(outputs) == 0 { // without an output the filter drops the record
				return err
			}
			filtered, err := jq.Join(outputs)
			if err != nil {
				return err
			}
			return emit(filtered)
		}
	}
	if conditional || l.trigger != "" && o.Until != "" {
		if l.last, err = newLastEvent(ctx, condition, conditional, l.trigger != ""); err != nil {
			return nil, err
		}
		call.Until = l.last.isLast
	}
	l.triggered, l.over = make(chan struct{}), make(chan struct{})
	l.triggering, l.abandon = context.WithCancel(ctx)
	defer l.abandon()
	answer, err := h.Call(ctx, call)
	close(l.over)
	stream := &Stream{Answer: answer, Began: l.isListening}
	if err != nil || options.DryRun {
		return stream, err
	}
	l.end(stream)
	return stream, nil
}

// listening is a stream that is running.
type listening struct {
	deps           *Deps
	host           *host.Host
	session        host.Session
	options        ListenOptions
	trigger        string
	triggerParams  json.RawMessage
	triggerOptions host.Options
	last           *lastEvent // nil if the plugin alone decides

	cancel      context.CancelCauseFunc // ends the stream
	isListening bool
	over        chan struct{} // closed when the stream has ended
	triggering  context.Context
	abandon     context.CancelFunc // ends the trigger
	triggered   chan struct{}      // closed when the trigger has returned
	refused     *host.Error        // why the trigger did not run
}

// began calls the trigger, once the plugin listens.
func (l *listening) began() {
	l.isListening = true
	go func() {
		defer close(l.triggered)
		if l.trigger == "" {
			return
		}
		answer, _ := l.host.Call(l.triggering, host.Call{
			Name: l.options.Plugin + "." + l.trigger, Params: l.triggerParams, Caller: Caller, Session: l.session,
			Options: l.triggerOptions,
		})
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

// checkTrigger returns the error of a trigger that was refused or could not run: it ends the stream. A trigger that ran
// and failed, such as a navigation to an unknown host, may be what the stream is about: it is reported, and the stream
// goes on.
func (l *listening) checkTrigger(failed *host.Error) *host.Error {
	if failed != nil && failed.Tool != nil && failed.Protocol == nil {
		l.deps.Notice("the trigger: " + failed.Message)
		return nil
	}
	return failed
}

// end waits for the trigger and reports how the stream ended.
func (l *listening) end(stream *Stream) {
	if l.isListening {
		if !await(l.triggered, triggerGrace) {
			l.abandon()
			<-l.triggered
			l.deps.Notice("the trigger: " + l.trigger + " had not returned when the stream ended, and was abandoned")
		}
		if l.refused != nil {
			l.deps.Notice("the trigger: " + l.refused.Message) // the stream itself ended as requested
		}
	}
	for _, warning := range stream.Answer.Warnings {
		l.deps.Notice(warning)
	}
	_ = json.Unmarshal(stream.Answer.Data, &stream.StreamEnd)
	stream.Unmet = l.options.Until != "" && stream.End != "until"
	switch {
	case !stream.Unmet || l.last == nil:
	case l.last.failed != nil:
		l.deps.Notice("the condition of --until could not be evaluated: " + l.last.failed.Error())
	case l.last.unmet:
		l.deps.Notice("no event that --until names met its condition, which applies to the event's params alone, as in " +
			conditionSample)
	}
}

// await waits until done is closed, at most for patience, and reports whether it was.
func await(done <-chan struct{}, patience time.Duration) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// readTrigger splits the value of --trigger into a tool and its parameters, which follow a space in any form of
// --params.
func (d *Deps) readTrigger(ctx context.Context, given string) (tool string, params json.RawMessage, err error) {
	tool, rest, _ := strings.Cut(strings.TrimSpace(given), " ")
	if rest = strings.TrimSpace(rest); rest != "" {
		params, err = d.readParams(ctx, rest, 0)
	}
	return tool, params, err
}

// TriggerOf returns the value of [ListenOptions.Trigger] that makes a call: its tool, and its parameters as JSON or as
// they were given with --params @FILE or -. The parameters are those of o, or what they were certainly meant to be. The
// error is that of the call: its tool does not exist, or it is unknown what its parameters were meant to be.
func TriggerOf(ctx context.Context, d *Deps, o CallOptions) (string, error) {
	h, err := d.Host(ctx)
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
	params, err := d.buildParams(ctx, at.Tool, &o)
	if err == nil {
		if e := h.CheckCall(host.Call{Name: o.Tool, Params: params}); e != nil {
			err = e
		}
	}
	if err != nil {
		e := host.AsError(err)
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
	condition *jq.Expression // of the event's parameters; nil: any event
	fresh     bool           // replayed events do not count
	failed    error          // why the condition could not be evaluated, the last time
	unmet     bool           // an event did not meet the condition
}

// conditionSample is an example of a condition of --until.
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

// isLast reports whether a record is the last: its condition has an output that is neither null nor false.
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
