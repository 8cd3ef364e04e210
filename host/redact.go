package host

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/manifest"
)

// redactor gives a call the secrets of its grant, and takes their values out of all that leaves the call again.
type redactor struct {
	source Secrets
	grants []SecretGrant
	outer  *redactor // of the call in whose name this one is made

	mu       sync.Mutex
	values   map[string]string // by name, those that were asked for
	replacer *strings.Replacer
}

// value returns a secret of the grant.
func (v *redactor) value(ctx context.Context, name string) (string, error) {
	if !slices.ContainsFunc(v.grants, func(g SecretGrant) bool { return g.Name == name }) {
		return "", Errorf(Denied, "secret %s is not granted", printable(name))
	}
	if v.source == nil {
		return "", Errorf(ConfigError, "secret %s has no value: this host keeps none", name)
	}
	v.mu.Lock()
	value, known := v.values[name]
	v.mu.Unlock()
	if known {
		return value, nil
	}
	value, err := v.source.Secret(ctx, name)
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.values == nil {
		v.values = map[string]string{}
	}
	v.values[name] = value
	v.replacer = newReplacer(v.values)
	return value, nil
}

// readable tells whether the guest may see a secret.
func (v *redactor) readable(name string) bool {
	return slices.ContainsFunc(v.grants, func(g SecretGrant) bool { return g.Name == name && g.Read })
}

// redact replaces each value that was asked for, also where it was encoded on its way.
func (v *redactor) redact(s string) string {
	v.mu.Lock()
	replacer := v.replacer
	v.mu.Unlock()
	if replacer == nil {
		return s
	}
	return replacer.Replace(s)
}

func (v *redactor) redactJSON(data json.RawMessage) json.RawMessage {
	if v.empty() || len(data) == 0 {
		return data
	}
	return manifest.MapJSON(data, v.redact)
}

// redactAll, redactAllJSON and redactAllError are for what is kept of a call: it must not hold what the calls around this one know either.
func (v *redactor) redactAll(s string) string {
	for ; v != nil; v = v.outer {
		s = v.redact(s)
	}
	return s
}

func (v *redactor) redactAllJSON(data json.RawMessage) json.RawMessage {
	for ; v != nil; v = v.outer {
		data = v.redactJSON(data)
	}
	return data
}

// redactAllError returns a copy, for the caller of a nested call sees more than is kept of it.
func (v *redactor) redactAllError(e *Error) *Error {
	if e == nil {
		return nil
	}
	redacted := *e
	redacted.Details, redacted.Denied = slices.Clone(e.Details), slices.Clone(e.Denied)
	redacted.Steps = slices.Clone(e.Steps)
	if e.Tool != nil {
		tool := *e.Tool
		redacted.Tool = &tool
	}
	for ; v != nil; v = v.outer {
		v.redactError(&redacted)
	}
	return &redacted
}

func (v *redactor) empty() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.replacer == nil
}

// redactUnreadable is hide for what comes to the guest itself, which may hold the secrets that it may read.
func (v *redactor) redactUnreadable(s string) string {
	v.mu.Lock()
	unread := map[string]string{}
	for name, value := range v.values {
		if !v.readable(name) {
			unread[name] = value
		}
	}
	v.mu.Unlock()
	if len(unread) == 0 {
		return s
	}
	return newReplacer(unread).Replace(s)
}

// redactError takes secrets out of everything in an error that may repeat what a guest said.
func (v *redactor) redactError(e *Error) {
	if v.empty() {
		return
	}
	e.Message = v.redact(e.Message)
	for i := range e.Details {
		d := &e.Details[i]
		d.Parameter, d.Provided, d.Expected = v.redact(d.Parameter), v.redact(d.Provided), v.redact(d.Expected)
		if s := d.Suggestion; s != nil {
			d.Suggestion = &Suggestion{v.redact(s.Pointer), s.Op, v.redact(s.Value)}
		}
	}
	for i := range e.Denied {
		e.Denied[i].Right, e.Denied[i].Why = v.redact(e.Denied[i].Right), v.redact(e.Denied[i].Why)
	}
	if e.Tool != nil {
		e.Tool.Name, e.Tool.Details = v.redact(e.Tool.Name), v.redactJSON(e.Tool.Details)
	}
	for i := range e.Steps {
		e.Steps[i] = e.Steps[i].redact(v.redact, v.redactJSON)
	}
	if e.Retry != nil {
		retry := e.Retry.redact(v.redact, v.redactJSON)
		e.Retry = &retry
	}
	e.Corrected, e.Marked = v.redactJSON(e.Corrected), v.redact(e.Marked)
}

// minFragment is the length from which an encoded form is looked for: shorter ones are found everywhere.
const minFragment = 8

// newReplacer looks for each value as it is and in the forms that a server, a log or a guest commonly gives it. Longer forms go first, so
// that no part of one is left over.
func newReplacer(values map[string]string) *strings.Replacer {
	type pair struct{ form, name string }
	var pairs []pair
	for name, value := range values {
		for _, form := range formsOf(value) {
			pairs = append(pairs, pair{form, name})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(len(b.form)-len(a.form), strings.Compare(a.form, b.form), strings.Compare(a.name, b.name))
	})
	var words []string
	for _, p := range pairs {
		words = append(words, p.form, "[secret "+p.name+"]")
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
	// A log has one line after the other, and in a message all stand in one.
	add(manifest.Clean(value))
	add(manifest.CleanLine(value))
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			add(manifest.CleanLine(line))
		}
	}
	for _, escaped := range []string{url.QueryEscape(value), url.PathEscape(value)} {
		add(escaped)
		add(lowerEscapes(escaped))
	}
	quoted, _ := json.Marshal(value)
	plain, _ := manifest.Marshal(value) // < > and & as they are
	add(strings.Trim(string(quoted), `"`))
	add(strings.Trim(string(plain), `"`))
	for _, marks := range [][2]string{{"&#34;", "&#39;"}, {"&quot;", "&#39;"}, {"&quot;", "&#x27;"}, {"&quot;", "&#039;"}} {
		add(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, marks[0], "'", marks[1]).Replace(value))
	}
	add(hex.EncodeToString([]byte(value)))
	add(strings.ToUpper(hex.EncodeToString([]byte(value))))
	// Inside of a longer text, base64 depends on where in its group of three bytes a value begins; the characters that it
	// shares with its neighbours are left out.
	for shift := range 3 {
		padded := append(make([]byte, shift), value...)
		whole := len(padded) / 3 * 4
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			from := []int{0, 2, 3}[shift]
			if encoded := enc.EncodeToString(padded); whole > from {
				add(encoded[from:whole])
			}
		}
	}
	return forms
}

// lowerEscapes writes the escapes of a URL with small letters.
func lowerEscapes(escaped string) string {
	parts := strings.Split(escaped, "%")
	for i, p := range parts[1:] {
		parts[i+1] = strings.ToLower(p[:2]) + p[2:]
	}
	return strings.Join(parts, "%")
}
