//go:build !wasip1

package sdk

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
)

// Main prints the manifest of the registered plugin to stdout and warnings for
// its author to stderr. It exits with 1 when the manifest cannot be built.
func Main() {
	raw, hints, err := buildManifest(&registered)
	for _, hint := range hints {
		fmt.Fprintln(os.Stderr, "warning:", hint)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Stdout.Write(raw)
}

// Manifest returns the manifest of the registered plugin as indented JSON. The
// error joins all problems found.
func Manifest() ([]byte, error) {
	raw, _, err := buildManifest(&registered)
	return raw, err
}

// Check runs every runnable example of the registered plugin and compares its
// outcome with the declared one. Call it from a test. It skips examples with
// exit code 81, which come from the host's validation by the schema.
func Check() error {
	var errs []error
	for _, t := range registered.Tools {
		params, _, err := t.schemas(nil)
		if err != nil {
			return err
		}
		for _, e := range t.doc.Examples {
			if !e.Runnable || e.ExitCode == 81 {
				continue
			}
			if err := registered.checkExample(t, params, e); err != nil {
				errs = append(errs, fmt.Errorf("%s, example %q: %w", t.name, e.Title, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (p *Plugin) checkExample(t Definition, params *schema, e Example) error {
	got, err := p.runExample(t, params, e)
	if err != nil {
		return err
	}
	if code := got.exitCode(); code != e.ExitCode {
		return fmt.Errorf("exit code %d, expected the declared %d: %s", code, e.ExitCode, got.Message)
	}
	if e.Result == nil {
		return nil
	}
	want, err := encode(withoutNil(&e.Result))
	if err != nil {
		return err
	}
	var a, b any
	if json.Unmarshal(want, &a) != nil || json.Unmarshal(got.Result, &b) != nil || !reflect.DeepEqual(a, b) {
		return fmt.Errorf("result %s, expected the declared %s", got.Result, want)
	}
	return nil
}

func (p *Plugin) runExample(t Definition, params *schema, e Example) (response, error) {
	raw, err := encodeParams(e.Params)
	if err != nil {
		return response{}, err
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // 2^53+1 must reach the function unchanged
	if err := d.Decode(&v); err != nil {
		return response{}, err
	}
	raw, err = encode(params.withDefaults(v))
	if err != nil {
		return response{}, err
	}
	return p.invoke(&Call{Tool: t.name, Caller: "cli", HostVersion: "0.0.0"}, raw), nil
}

func (r response) exitCode() int {
	switch {
	case r.OK:
		return 0
	case r.Invalid != nil:
		return 81
	}
	return r.Exit
}

func encodeParams(v any) ([]byte, error) {
	if v == nil {
		return []byte("{}"), nil
	}
	return encode(v)
}

// builder collects errors and hints while a manifest is built.
type builder struct {
	plugin *Plugin
	errs   []error
	hints  []string
}

func (b *builder) fail(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

func (b *builder) hint(format string, args ...any) {
	b.hints = append(b.hints, fmt.Sprintf(format, args...))
}

// buildManifest returns the manifest of p. It checks only what the code alone
// knows; the host validates names and texts when it reads the manifest.
func buildManifest(p *Plugin) (raw []byte, hints []string, err error) {
	b := &builder{plugin: p}
	if p.Name == "" || p.Version == "" || p.Brief == "" || len(p.Tools) == 0 {
		b.fail("a plugin needs Name, Version, Brief and Tools: call sdk.Register in init")
	}
	m := manifestForm{
		Manifest: 1, Name: p.Name, Version: p.Version, Kind: "parley/1", MinHost: p.MinHost,
		Docs:     docsForm{p.Brief, p.Standard, p.Full},
		Keywords: p.Keywords, License: p.License, Homepage: p.Homepage,
		ExitCodes: p.ExitCodes, Capabilities: p.Capabilities, Limits: p.Limits, Tutorial: p.Tutorial,
		Warm: p.Warm, Assets: p.Assets, Peers: p.Peers,
		Tools: []toolForm{},
	}
	for _, g := range p.Groups {
		m.Groups = append(m.Groups, groupForm{g.Name, docsForm{Brief: g.Brief, Standard: g.Standard}})
	}
	for _, name := range p.Scripts {
		text, err := os.ReadFile(name + ".js")
		if err != nil {
			b.fail("script %s: %w", name, err)
		}
		m.Scripts = append(m.Scripts, scriptForm{name, fmt.Sprintf("%x", sha256.Sum256(text))})
	}
	for _, c := range p.ExitCodes {
		if c.Code < 2 || c.Code > 79 {
			b.fail("exit code %s: %d is not between 2 and 79", c.Name, c.Code)
		}
	}
	if p.Settings != nil {
		t := reflect.TypeOf(p.Settings)
		if m.Settings, err = newReflector("", t.PkgPath(), b).object(t); err != nil {
			b.fail("settings: %w", err)
		}
	}
	for _, t := range p.Tools {
		m.Tools = append(m.Tools, b.tool(t))
	}
	if err := errors.Join(b.errs...); err != nil {
		return nil, b.hints, err
	}
	compact, err := encode(m)
	if err != nil {
		return nil, b.hints, err
	}
	var out bytes.Buffer
	writeIndented(&out, compact, 0)
	out.WriteByte('\n')
	return out.Bytes(), b.hints, nil
}

// writeIndented lays compact JSON out for review: a value that fits into 120
// columns stays on one line. raw must be valid.
func writeIndented(out *bytes.Buffer, raw json.RawMessage, indent int) {
	if len(raw)+indent <= 120 || raw[0] != '{' && raw[0] != '[' {
		out.Write(raw)
		return
	}
	newLine := func(n int) { out.WriteString("\n" + strings.Repeat(" ", n)) }
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token()
	out.WriteByte(raw[0])
	for first := true; d.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		newLine(indent + 1)
		var part json.RawMessage
		if raw[0] == '{' {
			key, _ := d.Token()
			name, _ := encode(key)
			out.Write(name)
			out.WriteString(": ")
		}
		d.Decode(&part)
		writeIndented(out, part, indent+1)
	}
	newLine(indent)
	out.WriteByte(raw[len(raw)-1])
}

func (b *builder) tool(t Definition) toolForm {
	d := t.doc
	f := toolForm{
		Name: t.name, Group: b.group(t), Category: d.Category, Docs: docsForm{d.Brief, d.Standard, d.Full},
		Positional: d.Positional, Steps: d.Steps, Effect: d.Effect, Reach: d.Reach, URL: d.URL, Files: d.Files,
		Idempotent: d.Idempotent, OpenWorld: d.OpenWorld, Needs: d.Needs,
		ExitCodes: d.ExitCodes, Aliases: d.Aliases, Keywords: d.Keywords, Tasks: d.Tasks, When: d.When, WhenNot: d.WhenNot,
		Related: d.Related, Limitations: d.Limitations,
		Since: d.Since, Experimental: d.Experimental, Deprecated: d.Deprecated,
	}
	if d.Brief == "" || d.Effect == "" {
		b.fail("tool %s: Brief and Effect are required", t.name)
	}
	var err error
	if f.Params, f.Returns, err = t.schemas(b); err != nil {
		b.fail("tool %s: %w", t.name, err)
		return f
	}
	for _, name := range d.Positional {
		if f.Params.property(name) == nil {
			b.fail("tool %s: positional %q is not a parameter", t.name, name)
		}
	}
	for _, name := range d.ExitCodes {
		if !slices.ContainsFunc(b.plugin.ExitCodes, func(c ExitCode) bool { return c.Name == name }) {
			b.fail("tool %s: exit code %q is not in Plugin.ExitCodes", t.name, name)
		}
	}
	for _, e := range d.Examples {
		form, err := b.example(t, f.Params, e)
		if err != nil {
			b.fail("tool %s, example %q: %w", t.name, e.Title, err)
		}
		f.Examples = append(f.Examples, form)
	}
	if len(d.Examples) == 0 {
		b.hint("tool %s has no example", t.name)
	}
	return f
}

func (b *builder) example(t Definition, params *schema, e Example) (exampleForm, error) {
	f := exampleForm{Title: e.Title, Kind: e.Kind, ExitCode: e.ExitCode, Runnable: e.Runnable,
		Before: e.Before}
	var err error
	if f.Params, err = encodeParams(e.Params); err != nil {
		return f, err
	}
	if e.Result != nil {
		f.Result, err = encode(withoutNil(&e.Result))
		return f, err
	}
	if !e.Runnable || e.ExitCode != 0 {
		return f, nil
	}
	r, err := b.plugin.runExample(t, params, e)
	if err != nil {
		return f, err
	}
	if !r.OK {
		why, _ := encode(r)
		return f, fmt.Errorf("exit code 0 is declared, but the call fails: %s", why)
	}
	f.Result = r.Result
	return f, nil
}

func (b *builder) group(t Definition) string {
	prefix, _, _ := strings.Cut(t.name, ".")
	if t.doc.Group != "" || !slices.ContainsFunc(b.plugin.Groups, func(g Group) bool { return g.Name == prefix }) {
		return t.doc.Group
	}
	return prefix
}
