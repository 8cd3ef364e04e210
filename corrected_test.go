package parley

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// misplaced returns the forms of a call's parameters with one level too many or too few: in a list, each value in a
// list or in an object of its name, the only item of a list without it, the only value without its name. A step may
// also have its name before its words, and be in JSON text.
func misplaced(t *manifest.Tool, params map[string]any) (forms []any) {
	with := func(name string, value any) {
		form := maps.Clone(params)
		form[name] = value
		forms = append(forms, form)
	}
	forms = append(forms, []any{params})
	all := manifest.Params(t.Params)
	isLone := len(params) == 1 && (len(all) == 1 || all[0].Required && !all[1].Required)
	for name, value := range params {
		kind, _ := manifest.TypeAt(t.Params, name)
		list, isList := value.([]any)
		if isList && len(list) == 1 && kind == "array" {
			with(name, list[0])
		}
		if name == t.Steps {
			words, _ := list[0].([]any)
			if words == nil { // it is in another form already
				continue
			}
			short := map[string]any{words[0].(string): words[1:]}
			with(name, short)
			with(name, []any{string(jsontext.Marshal(short))})
			if len(params) == 1 {
				forms = append(forms, value, words, short)
			}
		}
		text, _ := value.(string)
		if isList || kind == "any" || kind == "object" || jsontext.LooksLikeJSON(text) {
			continue
		}
		with(name, []any{value})
		with(name, map[string]any{name: value})
		if isLone {
			forms = append(forms, value)
		}
	}
	return forms
}

// TestMisplacedValues checks of each example of each tool, with one level too many or too few, that the call is taken
// as it is meant, or that its error has the corrected call, which runs.
func TestMisplacedValues(t *testing.T) {
	h := valuesHost(t)
	tried := 0
	dry := func(name string, params any) (*host.Error, any) {
		a, _ := h.Call(t.Context(), host.Call{Name: name, Params: jsontext.Marshal(params),
			Principal: caller.Principal{Name: "cli"}, Options: job.Options{DryRun: true}})
		var printed struct{ Params any }
		_ = json.Unmarshal(a.Data, &printed)
		return a.Err, printed.Params
	}
	for _, p := range h.Catalog().Providers() {
		names, err := p.Names()
		if err != nil {
			t.Fatal(err)
		}
		for _, local := range names {
			tool, err := p.Tool(local)
			if err != nil {
				t.Fatal(err)
			}
			name := p.Info().Name + "." + local
			for _, example := range tool.Examples {
				var params map[string]any
				_ = json.Unmarshal(example.Params, &params)
				if list, ok := params[tool.Steps].([]any); ok {
					params[tool.Steps] = list[:1]
				}
				e, want := dry(name, params)
				if e != nil {
					continue // it shows an error
				}
				for _, form := range misplaced(tool, params) {
					tried++
					e, got := dry(name, form)
					if e != nil && e.Corrected != nil && e.Retry != nil {
						e, got = dry(name, e.Corrected)
					}
					if e != nil || !reflect.DeepEqual(got, want) {
						t.Errorf("%s %s: %v, %s", name, jsontext.Marshal(form), e, jsontext.Marshal(got))
					}
				}
			}
		}
	}
	if tried < 2000 {
		t.Errorf("only %d calls were tried", tried)
	}
}
