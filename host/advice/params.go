package advice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

const (
	// maxCorrected is the maximum size of corrected parameters in an error, in bytes. An error repeats them several
	// times.
	maxCorrected = 8 << 10
	// maxRepaired is the maximum size of a text that is repaired into valid JSON for an error, in bytes.
	maxRepaired = 4 << 10
)

// Params are the parameters of one call. [Params.Check] converts them from the form in which they were given to the
// form that the tool receives, or says what they were meant to be.
type Params struct {
	Names        *Names // nil for a tool that no catalog has
	At           host.Address
	Tool         string // the name in messages
	Given        json.RawMessage
	Options      job.Options  // options of the call
	GivenOptions step.Options // without those that the configuration has added

	// Check sets the following fields.

	Value    json.RawMessage     // complete and in canonical form
	Members  map[string][]string // as in [host.Event]
	Coerced  bool                // whether the type of a value was changed
	Warnings []string            // a line for each such change
	Steps    []*Params           // the calls of other tools of the plugin that the parameters list
}

// Find looks up the tool of a call, and returns its parameters as they were given. The error is not_found, or
// invalid_args for the name of something that cannot be called. Even then At says what was found.
func Find(n *Names, c *host.Call) (*Params, error) {
	at, err := c.At, error(nil)
	if at.Tool == nil || !n.catalog.Has(at) { // a plugin may have been replaced since
		find := n.catalog.Find
		if c.Options.SendAnyway {
			find = n.catalog.FindAnyway
		}
		at, err = find(c.Name)
	}
	p := &Params{Names: n, At: at, Tool: at.Name(), Given: c.Params, Options: c.Options, GivenOptions: c.Given}
	if err == nil && at.Tool == nil {
		err = notCallable(at)
	}
	return p, err
}

// Check decodes the parameters, coerces types where that is safe, fills in defaults and validates them, and the steps
// among them. An invalid_args error has every violation, and the corrected call if it is known.
func (p *Params) Check() *host.Error {
	err := p.check()
	if err == nil {
		err = p.readSteps()
	}
	if err == nil {
		return nil
	}
	e := host.AsError(err)
	if e.Code != host.InvalidArgs {
		p.AddSuggestions(e)
	}
	return e
}

func (p *Params) check() error {
	raw := p.Given
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		raw = json.RawMessage("{}")
	}
	paramsSchema, err := p.At.SchemaOf(p.At.Tool.Params, "params")
	if err != nil {
		return err
	}
	value, err := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		e := SyntaxError(err, raw)
		if paramsSchema != nil {
			p.correct(e, paramsSchema, brokenJSON(raw))
		}
		return e
	}
	if paramsSchema != nil {
		p.Members = enumMembers(paramsSchema.Root(), value)
	}
	if paramsSchema == nil || p.Options.SendAnyway {
		p.Value = raw
	} else if err = p.validate(paramsSchema, value); err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(p.Value), []byte("{")) { // schemas of Extism plugins may allow more
		return host.Errorf(host.InvalidArgs, `parameters must be an object, such as {"name":"value"}`)
	}
	return nil
}

// validate coerces and validates decoded parameters, and writes them in the form that the tool receives.
func (p *Params) validate(paramsSchema *schema.Schema, value any) error {
	coerced, coercions, violations, err := paramsSchema.Admit(value)
	switch _, isTooCostly := errors.AsType[*schema.CostError](err); {
	case isTooCostly:
		return &host.Error{Code: host.LimitExceeded, Message: "validating these parameters would exceed the cost limit: " +
			err.Error(),
			Cause: err}
	case err != nil:
		return err
	case len(violations) > 0:
		return p.violationError(paramsSchema, value, violations)
	}
	p.Coerced = len(coercions) > 0
	for _, s := range coercions {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s: took %s as %s", cmp.Or(s.Pointer, "parameters"),
			s.From, s.To))
	}
	p.Value = jsontext.Marshal(paramsSchema.Canonical(coerced))
	if w := p.At.Tool.WASI; w != nil {
		var values map[string]json.RawMessage
		_ = json.Unmarshal(p.Value, &values)
		if name, place := w.WithNUL(values); name != "" {
			return p.violationError(paramsSchema, value, []schema.Violation{{Pointer: "/" + name, Keyword: "semantic",
				Expected: "a text without U+0000, which " + place + " cannot hold", Provided: "a text with U+0000"}})
		}
	}
	return origin.CheckURLs(p.Value, p.At.Tool.URL)
}

// CheckValues is [Params.Check] for tools that are in no catalog, such as the tools of an MCP server itself. It
// returns the parameters with defaults, and a warning for each coercion. The error is invalid_args with every
// violation, or limit_exceeded.
func CheckValues(name string, paramsSchema *schema.Schema, raw json.RawMessage) (json.RawMessage, []string,
	*host.Error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	value, err := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return nil, nil, SyntaxError(err, raw)
	}
	p := &Params{Tool: name, At: host.Address{Tool: &manifest.Tool{}}}
	if err := p.validate(paramsSchema, value); err != nil {
		e := host.AsError(err)
		e.Retry = nil // there is no tool to call
		return nil, nil, e
	}
	return p.Value, p.Warnings, nil
}

// CheckCall validates a call as if it were made, and returns why it would be refused.
func CheckCall(n *Names, c host.Call) *host.Error {
	p, err := Find(n, &c)
	if err != nil {
		return host.AsError(err)
	}
	return p.Check()
}

// SameJSON reports whether two texts are the same value.
func SameJSON(a, b []byte) bool {
	x, err := jsontext.Decode(a, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return false
	}
	y, err := jsontext.Decode(b, jsontext.Limits{Bytes: host.MaxParams})
	return err == nil && bytes.Equal(jsontext.Marshal(x), jsontext.Marshal(y))
}

func notCallable(a host.Address) *host.Error {
	if a.Entry != nil {
		what := "a type"
		if a.Entry.Kind == "event" {
			what = "an event"
		}
		return host.Errorf(host.InvalidArgs, "%s is %s and cannot be called", a.Name(), what).
			WithSteps(step.Describe(a.Name(), 0))
	}
	what := "plugin"
	if a.Group != "" {
		what = "group"
	}
	return host.Errorf(host.InvalidArgs, "%s is a %s; name one of its tools", a.Name(),
		what).WithSteps(step.List(a.Name()))
}

func SyntaxError(err error, raw []byte) *host.Error {
	e := &host.Error{Code: host.InvalidArgs, Message: manifest.CleanLine(err.Error()), Cause: err}
	if at, ok := errors.AsType[*jsontext.SyntaxError](err); ok {
		expected := "one JSON object"
		if at.Pointer != "" {
			expected = "valid JSON; " + at.Msg
		}
		e.Details = []host.Detail{{
			Parameter: manifest.CleanLine(at.Pointer), Keyword: "syntax", Provided: excerpt(raw, int(at.Offset)),
			Expected: manifest.CleanLine(expected),
			Suggestion: &step.Suggestion{Pointer: at.Pointer, Op: step.SuggestSyntax,
				Value: fmt.Sprintf("line %d, column %d", at.Line, at.Column)},
		}}
	}
	return e
}

// excerpt returns the text around an offset, on one line.
func excerpt(raw []byte, offset int) string {
	offset = max(0, min(offset, len(raw)))
	from, to := max(0, offset-20), min(len(raw), offset+20)
	return manifest.CleanLine(strings.ToValidUTF8(string(raw[from:to]), "\ufffd"))
}

// decodeParams decodes parameters, which may be missing, as an object. The error is invalid_args.
func decodeParams(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	value, err := jsontext.Decode(raw, jsontext.Limits{Bytes: host.MaxParams})
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, host.Errorf(host.InvalidArgs, "parameters: expected a JSON object, got %s", manifest.Clip(string(raw),
			80))
	}
	return object, nil
}
