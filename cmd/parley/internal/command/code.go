package command

import (
	"context"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// CodeOptions say which program to run. Params and Set are its inputs.
type CodeOptions struct {
	CallOptions
	// Path is the file with the program, - for [Deps.Input].
	Path string
}

// Code runs a JavaScript program: it calls js.run. The answer and the error are those of [Call].
func Code(ctx context.Context, d *Deps, o CodeOptions) (*host.Answer, error) {
	source, err := d.readProgram(ctx, o)
	if err != nil {
		return nil, err
	}
	params, err := manifest.Marshal(map[string]string{"source": string(source)})
	if err != nil {
		return nil, err
	}
	inputs, err := d.readParams(ctx, o.Params, o.Timeout)
	if err != nil {
		return nil, err
	}
	if len(inputs) > 0 {
		params = append(append(append(params[:len(params)-1], `,"inputs":`...), inputs...), '}')
	}
	call := o.CallOptions
	call.Tool, call.Params, call.Set = "js.run", string(params), nil
	for _, input := range o.Set {
		call.Set = append(call.Set, "inputs."+input)
	}
	return Call(ctx, d, call)
}

func (d *Deps) readProgram(ctx context.Context, o CodeOptions) ([]byte, error) {
	if o.Path == "-" {
		if o.Params == "-" {
			return nil, host.Errorf(host.InvalidArgs, "the program and its inputs cannot both come from the standard input").
				WithNext("parley code program.js --params -")
		}
		return d.readParams(ctx, "-", o.Timeout)
	}
	const limit = 1 << 20 // js.run says what is too long
	source, err := host.ReadValue(ctx, o.Path, limit)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the program: %s; expected a file with JavaScript, or - for "+
			"the standard input", manifest.CleanLine(err.Error())).WithSteps(host.OperatorStep(host.OpHelp, "code"))
	}
	return source, nil
}
