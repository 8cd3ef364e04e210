package command

import (
	"context"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/jq"
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
	// Drain makes Out take the byte stream that the result names.
	Drain bool

	// Progress is called while the tool runs. It may be nil.
	Progress func(done, total float64, message string)
}

// OutFile is the data of a call whose result was written to a file.
type OutFile struct {
	Out   string `json:"out"`
	Bytes int64  `json:"bytes"`
	Mime  string `json:"mime"`
}

// Call runs a tool. With Out, the data of the answer is an [OutFile].
//
// If the call was made, the answer says which one it was, also of a call that failed, such as that of a tool that does
// not exist. The answer is nil if the options are invalid or the file cannot be written.
func Call(ctx context.Context, d *Deps, o CallOptions) (*host.Answer, error) {
	h, err := d.Host(ctx)
	if err != nil {
		return nil, err
	}
	call := host.Call{Name: o.Tool, Caller: Caller, Session: d.Session(), Progress: o.Progress, Filter: jq.InProcess{}}
	call.Given = o.StepOptions()
	call.Given.Out, call.Given.File, call.Given.Drain = o.Out != "", o.Out, o.Drain
	find := h.Catalog().Find
	if o.SendAnyway {
		find = h.Catalog().FindAnyway
	}
	at, err := find(o.Tool)
	if err != nil { // the host refuses the call and records it
		return h.Call(ctx, call)
	}
	call.Log = func(_ int, message string) { d.debugf("%s: %s", at.Plugin, message) }
	if call.Options, err = d.callOptions(o.Options); err != nil {
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
	if o.Out == "" {
		return cutNotice(h.Call(ctx, call))
	}
	call.Options.MaxBytes = 0 // the file takes the whole result
	if o.DryRun {
		return h.Call(ctx, call)
	}
	file := &outFile{path: o.Out, raw: o.Drain}
	defer file.discard()
	if at.Tool != nil {
		file.returns = at.Tool.Returns
	}
	if o.JQ == "" { // a filter needs the whole result in memory
		call.Out, call.Drain = file, o.Drain
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

// cutNotice adds to an answer that was cut how to get the whole result.
func cutNotice(answer *host.Answer, err error) (*host.Answer, error) {
	if answer.Cut {
		answer.Warnings = append(answer.Warnings, "--out FILE writes the whole result")
	}
	return answer, err
}

// callOptions returns the options of a call with the configured values in place of those that are zero. The error is
// invalid_args for a value that no call can have.
func (d *Deps) callOptions(o host.Options) (host.Options, error) {
	s, err := d.Settings()
	if err != nil {
		return o, err
	}
	return s.Complete(o), o.Check()
}
