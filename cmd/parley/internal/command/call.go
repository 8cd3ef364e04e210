package command

import (
	"context"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/manifest"
)

// CallOptions are the options of a call of a tool.
type CallOptions struct {
	Tool string // qualified
	host.Options

	// Params is a JSON object, @FILE or - for [Deps.Input]. "" means none.
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

// Call runs a tool. With Out, the data of the answer is a [host.File].
//
// If the call was made, the answer says which one it was, also of a call that failed, such as that of a tool that does
// not exist. The answer is nil if the options are invalid or the file cannot be written.
func Call(ctx context.Context, d *Deps, o CallOptions) (*host.Answer, error) {
	h, err := d.Host(ctx)
	if err != nil {
		return nil, err
	}
	call, err := d.newCall(o.Tool, o.Options, o.Out)
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
	call.Trace = o.Trace || d.Debugging
	call.Log = func(_ int, message string) { d.debugf("%s: %s", at.Plugin, message) }
	if err := o.Check(); err != nil {
		return nil, err
	}
	if at.Tool != nil {
		if call.Params, err = d.buildParams(ctx, at.Tool, &o); err != nil {
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

// newCall returns a call of a tool, with the configured values in place of options that are zero. out is the file that
// the result goes to, "" for none.
func (d *Deps) newCall(tool string, o host.Options, out string) (host.Call, error) {
	s, err := d.Settings()
	if err != nil {
		return host.Call{}, err
	}
	session, err := d.Session()
	if err != nil {
		return host.Call{}, err
	}
	c := host.Call{
		Name: tool, Caller: Caller, Session: session, Options: s.forCall(o), Given: o.StepOptions(),
		KeepBinary: s.Agent, Render: d.Command, Filter: jq.InProcess{},
	}
	c.Given.Out, c.Given.File = out != "", out
	return c, nil
}

// callInto makes a call and writes the whole result to a file: the data of the answer is a [host.File]. A call that
// fails or is a dry run writes none. The answer is nil if the file cannot be written. The tool may be nil.
func callInto(
	ctx context.Context, h *host.Host, call host.Call, path string, tool *manifest.Tool,
) (*host.Answer, error) {
	call.Options.MaxBytes, call.KeepBinary = 0, false
	if call.Options.DryRun {
		call.Drain = false
		return h.Call(ctx, call)
	}
	file := &outFile{path: path, raw: call.Drain, filtered: call.Options.JQ != ""}
	defer file.discard()
	if tool != nil {
		file.returns = tool.Returns
	}
	if call.Options.JQ == "" { // a filter needs the whole result in memory
		call.Out = file
	}
	answer, err := h.Call(ctx, call)
	if err != nil {
		return answer, err
	}
	if answer.Written > 0 || answer.Raw {
		answer.Data, err = file.done()
	} else {
		answer.Data, err = file.whole(answer.Data)
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}
