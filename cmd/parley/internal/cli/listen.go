package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

const (
	// listenForever bounds a stream for which nobody said otherwise.
	listenForever = 24 * time.Hour
	// listenGrace is how much longer than the stream its call may take to end.
	listenGrace = 10 * time.Second
)

// listen streams a plugin's events to stdout, one JSON line each; the last line says why it ended.
func (a *App) listen(ctx context.Context, h *host.Host, at host.Address, f *callFlags) error {
	cfg, err := a.settings()
	if err != nil {
		return err
	}
	if _, err := h.Catalog().FindIn(at.Plugin, "events"); err != nil {
		return host.Errorf(host.InvalidArgs, "%s has no events to listen to", at.Plugin).WithNext(host.Address{Plugin: at.Plugin}.ListCommand())
	}
	options, err := f.options(cfg)
	if err != nil {
		return err
	}
	params := map[string]any{"match": f.listen}
	if f.until != "" {
		params["until"] = f.until
	}
	if f.max > 0 {
		params["max"] = f.max
	}
	options.Timeout = listenForever
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
		if each, err = jqFilter(f.jq); err != nil {
			return err
		}
	}
	call := host.Call{
		Name: at.Plugin + ".events", Params: raw, Caller: "cli", Session: a.Env("PARLEY_SESSION"), Options: options,
		Emit: func(record json.RawMessage) error {
			line, err := each(record)
			if err != nil {
				return err
			}
			_, err = a.Out.Write(append(manifest.EscapeJSON(line), '\n'))
			return err
		},
	}
	triggered := make(chan struct{})
	if f.trigger == "" || options.DryRun {
		close(triggered)
	} else {
		call.Started = func() {
			go func() {
				defer close(triggered)
				o := options
				o.Timeout = f.timeout
				answer := h.Call(ctx, host.Call{Name: at.Plugin + "." + f.trigger, Caller: "cli", Session: call.Session, Options: o})
				if answer.Err != nil {
					cancel(answer.Err)
				}
			}()
		}
	}
	answer := h.Call(ctx, call)
	if answer.Err != nil {
		return &failure{answer.Err, answer.Envelope()}
	}
	if options.DryRun {
		return a.envelope(answer.Envelope(), nil)
	}
	<-triggered
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
		return &exitStatus{host.Errorf(host.Timeout, "").ExitCode()}
	}
	return nil
}
