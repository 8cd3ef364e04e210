// Package redact replaces the values of secrets in what leaves a call, in all forms that commonly occur.
package redact

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// heldSecrets is implemented by [host.Secrets] that know the values of secrets before a call uses them.
type heldSecrets interface {
	// HeldSecrets returns the values by name, of at least [host.MinHeldSecret] bytes: a shorter one would match unrelated
	// text.
	HeldSecrets(ctx context.Context) map[string]string
}

// reflectionRefuser is implemented by [host.Secrets] that refuse responses with the values of some secrets: if a
// response holds such a value in a known form, the call fails instead of having it redacted.
type reflectionRefuser interface {
	RefusesReflection(name string) bool
}

// Clean returns the block without secrets, and with its type and its URI on one line without hidden characters.
func Clean(c job.Content, redact func(string) string) job.Content {
	c.Text, c.Data = redact(c.Text), redact(c.Data)
	c.MIME, c.URI = redact(manifest.CleanLine(c.MIME)), redact(manifest.CleanLine(c.URI))
	return c
}

// Redactor returns the secrets of a call's grant, and redacts their values from everything that leaves the call. That
// is a best effort against accidents: a plugin that can read a secret can encode it in ways that no search recognizes.
type Redactor struct {
	Source host.Secrets
	Grants []grant.Secret
	Outer  *Redactor // redactor of the call that makes this one
	Typed  *Redactor // redacts secrets that this host has typed into pages, which can show them later

	mu      sync.Mutex
	values  map[string]string       // values that were used, by name
	forms   *secretForms            // forms of values; nil if there are none
	refused map[string]*secretForms // forms of the values that no response may hold, by name
}

// Value returns the value of a granted secret. The error is denied, with the step to log in, for a secret without a
// value because nobody has logged in.
func (v *Redactor) Value(ctx context.Context, name string) (string, error) {
	i := slices.IndexFunc(v.Grants, func(g grant.Secret) bool { return g.Name == name })
	if i < 0 {
		return "", host.Errorf(host.Denied, "secret %s is not granted", host.Printable(name))
	}
	if v.Source == nil {
		return "", host.Errorf(host.ConfigError, "secret %s has no value: this host has no secrets", name)
	}
	v.mu.Lock()
	value, known := v.values[name]
	v.mu.Unlock()
	if known {
		return value, nil
	}
	value, err := v.Source.Secret(ctx, name)
	if plugin := v.Grants[i].Login; plugin != "" && errors.Is(err, fs.ErrNotExist) {
		err = host.Errorf(host.Denied, "nobody has logged in for secret %s", name).
			WithSteps(step.Operator(step.OpLogin, plugin))
	}
	if err != nil {
		return "", err
	}
	v.Add(name, value)
	return value, nil
}

// Add registers the value of a secret for redaction.
func (v *Redactor) Add(name, value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.values == nil {
		v.values = map[string]string{}
	}
	v.values[name] = value
	v.forms = newSecretForms(v.values)
	if r, ok := v.Source.(reflectionRefuser); ok && r.RefusesReflection(name) {
		if v.refused == nil {
			v.refused = map[string]*secretForms{}
		}
		v.refused[name] = newSecretForms(map[string]string{name: value})
	}
}

// Reflected returns an error if a text holds a secret whose binding says reflect = "refuse".
func (v *Redactor) Reflected(where string, texts ...string) error {
	if v.Typed != nil {
		if err := v.Typed.Reflected(where, texts...); err != nil {
			return err
		}
	}
	v.mu.Lock()
	refused := v.refused
	v.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		for _, text := range texts {
			found, forms := false, refused[name]
			check := func(s string) string {
				found = found || forms.Redact(s) != s
				return s
			}
			if check(text); !found && json.Valid([]byte(text)) {
				manifest.MapJSON(json.RawMessage(text), check)
			}
			if found {
				return &host.Error{Code: host.Denied, Denied: []grant.Denial{{Right: "secret:" + name, Why: where +
					" holds its value"}},
					Message: fmt.Sprintf("%s holds the value of secret %s, whose binding says reflect = \"refuse\"; it is withheld",
						where, name)}
			}
		}
	}
	return nil
}

// Readable reports whether the guest may read a secret.
func (v *Redactor) Readable(name string) bool {
	return slices.ContainsFunc(v.Grants, func(g grant.Secret) bool { return g.Name == name && g.Read })
}

// Redact replaces each secret value that was used, also in encoded forms.
func (v *Redactor) Redact(s string) string {
	v.mu.Lock()
	forms := v.forms
	v.mu.Unlock()
	s = forms.Redact(s)
	if v.Typed != nil {
		s = v.Typed.Redact(s)
	}
	return s
}

// RedactJSON is [Redactor.Redact] for all texts in JSON.
func (v *Redactor) RedactJSON(data json.RawMessage) json.RawMessage {
	if v.empty() || len(data) == 0 {
		return data
	}
	return manifest.MapJSON(data, v.Redact)
}

// RedactAll is [Redactor.Redact] for records, which must not contain the secrets of the outer calls either.
func (v *Redactor) RedactAll(s string) string {
	for ; v != nil; v = v.Outer {
		s = v.Redact(s)
	}
	return s
}

// RedactAllJSON is [Redactor.RedactAll] for all texts in JSON.
func (v *Redactor) RedactAllJSON(data json.RawMessage) json.RawMessage {
	for ; v != nil; v = v.Outer {
		data = v.RedactJSON(data)
	}
	return data
}

// RedactAllError returns a redacted copy, because the caller of a nested call sees more than its record has.
func (v *Redactor) RedactAllError(e *host.Error) *host.Error {
	if e == nil {
		return nil
	}
	redacted := *e
	redacted.Details, redacted.Denied = slices.Clone(e.Details), slices.Clone(e.Denied)
	redacted.Steps, redacted.Changes = slices.Clone(e.Steps), slices.Clone(e.Changes)
	if e.Tool != nil {
		tool := *e.Tool
		redacted.Tool = &tool
	}
	for ; v != nil; v = v.Outer {
		v.RedactError(&redacted)
	}
	return &redacted
}

func (v *Redactor) empty() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.forms == nil && (v.Typed == nil || v.Typed.empty())
}

// RedactUnreadable is [Redactor.Redact] for data that goes to the guest itself: it keeps the secrets that the guest
// may read.
func (v *Redactor) RedactUnreadable(s string) string {
	v.mu.Lock()
	unread := map[string]string{}
	for name, value := range v.values {
		if !v.Readable(name) {
			unread[name] = value
		}
	}
	v.mu.Unlock()
	if len(unread) == 0 {
		return s
	}
	return newSecretForms(unread).Redact(s)
}

// RedactError redacts everything in an error that may come from a guest.
func (v *Redactor) RedactError(e *host.Error) {
	if v.empty() {
		return
	}
	e.Message, e.Subject, e.Approval = v.Redact(e.Message), v.Redact(e.Subject), v.Redact(e.Approval)
	for i := range e.Details {
		d := &e.Details[i]
		d.Parameter, d.Provided, d.Expected = v.Redact(d.Parameter), v.Redact(d.Provided), v.Redact(d.Expected)
		if s := d.Suggestion; s != nil {
			d.Suggestion = &step.Suggestion{Pointer: v.Redact(s.Pointer), Op: s.Op, Value: v.Redact(s.Value)}
		}
	}
	for i := range e.Denied {
		e.Denied[i].Right, e.Denied[i].Why = v.Redact(e.Denied[i].Right), v.Redact(e.Denied[i].Why)
	}
	if e.Tool != nil {
		e.Tool.Name, e.Tool.Details = v.Redact(e.Tool.Name), v.RedactJSON(e.Tool.Details)
		if i := e.Tool.Inner; i != nil {
			e.Tool.Inner = &host.InnerError{Tool: i.Tool, Code: host.Code(v.Redact(string(i.Code))), Name: v.Redact(i.Name),
				Message: v.Redact(i.Message), Details: v.RedactJSON(i.Details)}
		}
	}
	if e.Protocol != nil {
		e.Protocol = &host.ProtocolError{Code: e.Protocol.Code, Message: v.Redact(e.Protocol.Message),
			Data: v.Redact(e.Protocol.Data)}
	}
	e.Earlier, e.Effects = lists.Map(e.Earlier, v.Redact), lists.Map(e.Effects, v.Redact)
	if e.Trace != nil {
		trace := *e.Trace // the error that this one was copied from has it, too
		trace.Stderr, trace.Log = lists.Map(trace.Stderr, v.Redact), lists.Map(trace.Log, v.Redact)
		e.Trace = &trace
	}
	for i := range e.Steps {
		e.Steps[i] = e.Steps[i].Redact(v.Redact, v.RedactJSON)
	}
	if e.Retry != nil {
		retry := e.Retry.Redact(v.Redact, v.RedactJSON)
		e.Retry = &retry
	}
	e.Corrected, e.Template = v.RedactJSON(e.Corrected), v.RedactJSON(e.Template)
	for i, c := range e.Changes {
		e.Changes[i].From, e.Changes[i].To = v.Redact(c.From), v.Redact(c.To)
	}
}

// ownTexts are the fields of an event that the host chooses: ids that it makes, and words of its own.
var ownTexts = []string{"Op", "CallID", "Within", "RetryOf", "Approval", "Mode", "Audit", "By"}

// RedactEvent returns an event without the values of the secrets that the host holds. It does not matter who gave them
// to which tool. All texts are redacted, also names of sessions and clients.
func (v *Redactor) RedactEvent(e host.Event) host.Event {
	if v.hold(); v.empty() {
		return e
	}
	e.Params, e.Result, e.Err = v.RedactJSON(e.Params), v.RedactJSON(e.Result), v.RedactAllError(e.Err)
	e.Members = v.WithoutSecrets(maps.Clone(e.Members))
	v.redactFields(reflect.ValueOf(&e).Elem())
	return e
}

// redactFields redacts the texts of a struct, and those of its embedded structs.
func (v *Redactor) redactFields(of reflect.Value) {
	for i := range of.NumField() {
		field := of.Type().Field(i)
		switch text := of.Field(i).Addr().Interface().(type) {
		case *string:
			if !slices.Contains(ownTexts, field.Name) {
				*text = v.Redact(*text)
			}
		case *[]string:
			*text = lists.Map(*text, v.Redact)
		default:
			if field.Anonymous {
				v.redactFields(of.Field(i))
			}
		}
	}
}

// Held returns [Redactor.Redact] for the secrets that the host holds now. It is for stored texts that are not events.
func (v *Redactor) Held() func(string) string {
	v.hold()
	return v.Redact
}

// hold replaces the redacted values by the values of the secrets that the host holds now.
func (v *Redactor) hold() {
	source, ok := v.Source.(heldSecrets)
	if !ok {
		return
	}
	values := source.HeldSecrets(context.Background())
	v.mu.Lock()
	defer v.mu.Unlock()
	if !maps.Equal(values, v.values) {
		v.values, v.forms = values, nil
		if len(values) > 0 {
			v.forms = newSecretForms(values)
		}
	}
}

// Shorter forms would match unrelated text.
const (
	minFragment = 8 // bytes of a secret that the call did not use, and of what a cut has left
	minFolded   = 5 // bytes of an encoded form of a value that was used
)

// Prefix begins the text that replaces the value of a secret, "[secret NAME]".
const Prefix = "[secret "

// newReplacer returns a replacer of each value, as it is and as logs write it. Longer forms come first, so that no part
// of one remains.
func newReplacer(values map[string]string) *strings.Replacer {
	type pair struct{ form, name string }
	var pairs []pair
	for name, value := range values {
		for _, part := range parts(value) {
			for _, form := range formsOf(part) {
				pairs = append(pairs, pair{form, name})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(len(b.form)-len(a.form), strings.Compare(a.form, b.form), strings.Compare(a.name, b.name))
	})
	var words []string
	for _, p := range pairs {
		words = append(words, p.form, Prefix+p.name+"]")
	}
	return strings.NewReplacer(words...)
}

func formsOf(value string) []string {
	forms := []string{value}
	add := func(form string) {
		if len(form) >= minFragment {
			forms = append(forms, form)
		}
	}
	add(manifest.Clean(value))
	if strings.Contains(value, "\n") { // a log splits a value into lines
		for line := range strings.Lines(value) {
			add(manifest.CleanLine(line))
		}
	}
	return forms
}

// WithoutSecrets removes the members of enums that are the value of a secret.
func (v *Redactor) WithoutSecrets(members map[string][]string) map[string][]string {
	for name, list := range members {
		if slices.ContainsFunc(list, func(text string) bool { return v.RedactAll(text) != text }) {
			delete(members, name)
		}
	}
	return members
}
