package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/itchyny/gojq"

	"github.com/parley-tools/parley/host"
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

// listen streams a plugin's events to stdout, one JSON line each; the last line says why it ended.
func (a *App) listen(ctx context.Context, h *host.Host, at host.Address, f *callFlags) error {
	cfg, err := a.deps.Settings()
	if err != nil {
		return err
	}
	if _, err := h.Catalog().FindIn(at.Plugin, "events"); err != nil {
		return host.Errorf(host.InvalidArgs, "%s has no events to listen to", at.Plugin).
			WithNext("parley " + at.Plugin + " --list")
	}
	options, err := f.options(cfg)
	if err != nil {
		return err
	}
	trigger, triggerParams, err := a.readTrigger(ctx, f.trigger)
	if err != nil {
		return err
	}
	params := map[string]any{"match": f.listen}
	until, condition, conditional := strings.Cut(f.until, ":")
	if f.until != "" {
		params["until"] = until
	}
	if f.max > 0 {
		params["max"] = f.max
	}
	options.Timeout = maxListen
	if f.timeout > 0 {
		params["timeout_ms"] = f.timeout.Milliseconds()
		options.Timeout = f.timeout + listenGrace
	}
	raw, err := manifest.Marshal(params)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	each := func(record json.RawMessage) (json.RawMessage, error) { return record, nil }
	if f.jq != "" {
		if each, err = jqFilter(f.jq, true); err != nil {
			return err
		}
	}
	call := host.Call{
		Name: at.Plugin + ".events", Params: raw, Caller: "cli", Session: a.Env("PARLEY_SESSION"), Options: options,
		Emit: func(record json.RawMessage) error {
			line, err := each(record)
			if err != nil || line == nil {
				return err
			}
			_, err = a.Out.Write(append(manifest.EscapeJSON(line), '\n'))
			return err
		},
	}
	var failing *lastEvent
	if conditional || trigger != "" && f.until != "" {
		if failing, err = a.lastEvent(ctx, condition, conditional, trigger != ""); err != nil {
			return err
		}
		call.Until = failing.isLast
	}
	var refused *host.Error
	listening, triggered, over := false, make(chan struct{}), make(chan struct{})
	triggering, giveUp := context.WithCancel(ctx)
	defer giveUp()
	call.Started = func() {
		listening = true
		go func() {
			defer close(triggered)
			if trigger == "" {
				return
			}
			o := options
			o.Timeout = f.timeout
			answer, _ := h.Call(triggering, host.Call{
				Name: at.Plugin + "." + trigger, Params: triggerParams, Caller: "cli", Session: call.Session, Options: o,
			})
			if triggering.Err() != nil {
				return // the stream has ended
			}
			if refused = a.checkTrigger(answer.Err); refused != nil {
				if refused.Code == host.TargetCrashed || refused.Code == host.Busy {
					await(over, crashGrace)
				}
				cancel(refused)
			}
		}()
	}
	answer, _ := h.Call(ctx, call)
	close(over)
	if answer.Err != nil {
		if listening && (answer.Err.Code == host.Interrupted || answer.Err.Code == host.Terminated) {
			_, _ = io.WriteString(a.Out, `{"end":"closed"}`+"\n")
		}
		return a.failed(answer)
	}
	if options.DryRun {
		return a.envelope(a.deps.Envelope(answer), nil)
	}
	if listening {
		if !await(triggered, triggerGrace) {
			giveUp()
			<-triggered
			a.notice("the trigger: " + trigger + " had not returned when the stream ended, and was abandoned")
		}
		if refused != nil {
			a.notice("the trigger: " + refused.Message) // the stream itself ended as asked
		}
	}
	for _, warning := range answer.Warnings {
		a.notice(warning)
	}
	var end struct {
		End string `json:"end"`
	}
	_ = json.Unmarshal(answer.Data, &end)
	line, err := manifest.Marshal(end)
	if err != nil {
		return err
	}
	if _, err := a.Out.Write(append(line, '\n')); err != nil {
		return writeError(err)
	}
	if f.until != "" && end.End != "until" {
		if failing != nil && failing.failed != nil {
			a.notice("the condition of --until could not be evaluated: " + failing.failed.Error())
		} else if failing != nil && failing.unmet {
			a.notice("no event that --until names met its condition, which applies to the event's params alone, as in " +
				conditionSample)
		}
		return &exitStatus{host.Errorf(host.Timeout, "").ExitCode()}
	}
	return nil
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
func (a *App) readTrigger(ctx context.Context, given string) (tool string, params json.RawMessage, err error) {
	tool, rest, _ := strings.Cut(strings.TrimSpace(given), " ")
	if rest = strings.TrimSpace(rest); rest != "" {
		params, err = a.readParams(ctx, rest)
	}
	return tool, params, err
}

// checkTrigger returns the error of a trigger that was refused or could not run: it ends the stream. A trigger that ran
// and failed, such as a navigation to an unknown host, may be what the stream is about: it is reported, and the stream
// goes on.
func (a *App) checkTrigger(failed *host.Error) *host.Error {
	if failed != nil && failed.Tool != nil && failed.Protocol == nil {
		a.notice("the trigger: " + failed.Message)
		return nil
	}
	return failed
}

// lastEvent decides which event ends a stream.
type lastEvent struct {
	ctx       context.Context
	condition *gojq.Code // of the event's parameters; nil: any event
	fresh     bool       // replayed history does not count
	failed    error      // why the condition could not be evaluated, the last time
	unmet     bool       // an event did not meet the condition
}

// conditionSample is an example of a condition of --until.
const conditionSample = ".response.status == 404"

func (a *App) lastEvent(ctx context.Context, condition string, conditional, fresh bool) (*lastEvent, error) {
	l := &lastEvent{ctx: ctx, fresh: fresh}
	if !conditional {
		return l, nil
	}
	var err error
	if l.condition, err = compileJQ(condition); err != nil {
		return nil, jqError("--until EVENT:", condition, err).
			WithNext("--until 'Network.responseReceived:" + conditionSample + "'")
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
	for outputs := l.condition.RunWithContext(ctx, event.Params); ; {
		switch v, more := outputs.Next(); v := v.(type) {
		case error:
			l.failed = v
			return false
		case bool:
			if v {
				return true
			}
		default:
			if !more || v != nil {
				l.unmet = l.unmet || !more
				return more
			}
		}
	}
}
