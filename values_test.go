package parley

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/page"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/generate"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/plugins"
)

// valuesHost is a host with all tools that are shipped, and those of the fixtures of the kinds parley/1 and wasi.
func valuesHost(t *testing.T) *call.Host {
	home := testhome.New(t) // whose plugins are compiled already
	engine := wasm.New(wasm.Config{HostVersion: Version, CacheDir: filepath.Join(home, "cache", "wasm")})
	t.Cleanup(func() { _ = engine.Close(t.Context()) })
	shipped, err := plugins.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	var providers []host.Provider
	for _, f := range shipped {
		providers = append(providers, engine.Provider(shippedSource(f)))
	}
	for _, name := range []string{"wasm/rev", "wasm/echo"} {
		fixture, err := store.ReadCandidateFile(filepath.Join("testdata", filepath.FromSlash(name)+".wasm"), Version)
		if err != nil {
			t.Fatal(err)
		}
		providers = append(providers, engine.Provider(fixture.Source()))
	}
	chrome := cdp.New(cdp.Config{})
	catalog, err := host.NewCatalog(append(providers, chrome, page.New(chrome))...)
	if err != nil {
		t.Fatal(err)
	}
	h, err := call.New(call.Config{Catalog: catalog, Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// otherForm writes each integer of a JSON text in another form, as some encoders do.
func otherForm(data []byte, r *rand.Rand) []byte {
	var b []byte
	in := jsontext.Scan(data)
	for token := in.Next(); token != nil; token = in.Next() {
		b = append(b, token...)
		if digits, ok := jsontext.Integer(string(token)); ok && digits == string(token) {
			b = append(b, []string{".0", "e0", "E+0", ".00e-0"}[r.IntN(4)]...)
		}
	}
	return b
}

// TestNumberForms generates calls of every tool by its schema and writes their integers as 1.0 or 1e0: what a dry run
// accepts is shown with digits, and the guest's decoder reads it as the same call with digits.
func TestNumberForms(t *testing.T) {
	h := valuesHost(t)
	var integers, ran int
	for _, p := range h.Catalog().Providers() {
		m, err := p.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		names, err := p.Names()
		if err != nil {
			t.Fatal(err)
		}
		for i, local := range names {
			tool, err := p.Tool(local)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(local, ".") && i%10 != 0 {
				continue // the commands of the protocol have one schema after another of one kind
			}
			name := m.Name + "." + local
			r := rand.New(rand.NewPCG(uint64(i), 7))
			g, err := generate.New(tool.Params, uint64(i))
			if err != nil {
				t.Fatal(name, err)
			}
			for range 4 {
				plain := jsontext.Marshal(g.Value())
				other := otherForm(plain, r)
				if string(plain) == string(other) {
					continue
				}
				dry := func(params []byte) (*host.Answer, any) {
					a, _ := h.Call(t.Context(), host.Call{Name: name, Params: params, Principal: caller.Principal{Name: "cli"},
						Options: job.Options{DryRun: true}})
					var printed struct{ Params json.RawMessage }
					_ = json.Unmarshal(a.Data, &printed)
					value, _ := jsontext.Decode(printed.Params, jsontext.Limits{Bytes: host.MaxParams})
					return a, value
				}
				before, _ := dry(plain)
				after, params := dry(other)
				if (before.Err == nil) != (after.Err == nil) {
					t.Errorf("%s %s: %v\nas %s: %v", name, plain, before.Err, other, after.Err)
				}
				if after.Err != nil {
					continue
				}
				integers += wantDigits(t, name, tool.Params, params)
				if m.Kind == manifest.KindBuiltin || len(m.Capabilities.Tools) > 0 {
					continue // it would start Chrome
				}
				ran++
				want, _ := h.Call(t.Context(), host.Call{Name: name, Params: plain, Principal: caller.Principal{Name: "cli"}})
				if want.Err != nil && len(want.Err.Details) > 0 &&
					strings.HasPrefix(want.Err.Details[0].Expected, "a value that fits ") { // as the decoder of sdk/go says
					t.Errorf("%s %s is valid in a dry run: %+v", name, plain, want.Err.Details)
				}
				got, _ := h.Call(t.Context(), host.Call{Name: name, Params: other, Principal: caller.Principal{Name: "cli"}})
				if string(want.Data) != string(got.Data) || (want.Err == nil) != (got.Err == nil) ||
					want.Err != nil && want.Err.Message != got.Err.Message {
					t.Errorf("%s %s: %s, %v\nas %s: %s, %v", name, plain, want.Data, want.Err, other, got.Data, got.Err)
				}
			}
		}
	}
	if integers < 30 || ran < 8 {
		t.Errorf("only %d integers were written in other forms, and %d calls made", integers, ran)
	}
}

// wantDigits checks that each value that the schema calls an integer has the form of one, and counts them.
func wantDigits(t *testing.T, name string, raw json.RawMessage, value any) (count int) {
	document, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var walk func(at, v any)
	walk = func(at, v any) {
		s, _ := at.(map[string]any)
		if ref, ok := s["$ref"].(string); ok {
			tokens, _ := jsontext.SplitPointer(strings.TrimPrefix(ref, "#"))
			target, _ := jsontext.Lookup(document, tokens)
			walk(target, v)
		}
		for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
			branches, _ := s[keyword].([]any)
			for _, branch := range branches {
				walk(branch, v)
			}
		}
		switch v := v.(type) {
		case json.Number:
			if s["type"] == "integer" {
				count++
				if strings.ContainsAny(string(v), ".eE") {
					t.Errorf("%s: %s is written for an integer", name, v)
				}
			}
		case []any:
			for _, item := range v {
				walk(s["items"], item)
			}
		case map[string]any:
			properties, _ := s["properties"].(map[string]any)
			for key, inner := range v {
				walk(properties[key], inner)
				if properties[key] == nil {
					walk(s["additionalProperties"], inner)
				}
			}
		}
	}
	walk(document, value)
	return count
}
