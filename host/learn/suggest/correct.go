package suggest

import (
	"cmp"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/lint"
	"github.com/parley-tools/parley/manifest/schema"
)

// contradictions proposes edits that remove from the texts and examples of a plugin's tools what their schemas
// contradict. It is replaced if the schema says what is right, else deleted. This needs no calls, except for shipped
// plugins, whose texts are tested. If calls failed, sentences that misled their callers are deleted, too.
func (s *suggester) contradictions(p host.Provider) {
	m, err := wholeOf(host.Base(p))
	if err != nil {
		return // a damaged plugin; lists say so
	}
	s.corrected[m.Name] = &overlay.Overlay{}
	for i := range m.Tools {
		e, cases := s.evidence(m.Name, m.Tools[i].Name)
		t, err := p.Tool(m.Tools[i].Name) // with its present edits
		if err != nil || t == nil || p.Info().Identity() == host.OwnerShipped && len(e.Failed)+len(e.Names) == 0 {
			continue
		}
		for _, c := range lint.Corrections(m, t, e) {
			edit := overlay.Edit{Field: overlay.Param, Param: c.Param, Value: c.Text}
			if c.Param == "" {
				edit.Field = c.Pointer[strings.LastIndexByte(c.Pointer, '/')+1:]
			}
			s.correct(m.Name, t, edit, c.Why, cases)
		}
		s.examples(m.Name, t)
		s.deprecated(m, t)
	}
}

// deprecated proposes to remove a replacement that does not exist from a deprecation. A replacement of another plugin
// need not be installed here.
func (s *suggester) deprecated(m *manifest.Manifest, t *manifest.Tool) {
	d := t.Deprecated
	if d == nil || d.Use == "" {
		return
	}
	local, isOwn := strings.CutPrefix(d.Use, m.Name+".")
	if _, exists := s.find(m.Name + "." + local); exists || !isOwn && strings.Contains(local, ".") {
		return
	}
	kept := lists.Filter(strings.SplitAfter(d.Message, ". "), func(s string) bool { return !strings.Contains(s, d.Use) })
	s.correct(m.Name, t, overlay.Edit{Field: overlay.Deprecated, Value: cmp.Or(strings.Join(kept, ""),
		"What replaced it no longer exists.")}, "there is no tool "+d.Use, stats.Evidence{})
}

func (s *suggester) correct(plugin string, t *manifest.Tool, edit overlay.Edit, why string, e stats.Evidence) {
	edit.Tool, edit.Origin = t.Name, overlay.FromSchema
	s.corrected[plugin] = s.corrected[plugin].Merge([]overlay.Edit{edit})
	s.found = append(s.found, Suggestion{edit.ID(), plugin, edit, "contradiction", why, e.N, e.Sessions,
		append([]string{}, e.Calls...)})
}

// evidence returns why calls of a tool failed, as far as that is enough for a finding, and the cases.
func (s *suggester) evidence(plugin, tool string) (*lint.Evidence, stats.Evidence) {
	e := &lint.Evidence{Failed: map[string][]string{}, Refused: map[string][]string{}, Names: map[string]string{}}
	full, cases := plugin+"."+tool, stats.Evidence{}
	t := cmp.Or(lists.Find(s.report.Tools, func(t *stats.Tool) bool { return t.Name == full }), &stats.Tool{})
	for _, f := range t.Fields {
		tokens, _ := jsontext.SplitPointer(f.Pointer)
		if low, _ := stats.Wilson(f.Read, f.Of); low < minShare || !f.Enough() || len(tokens) != 1 {
			continue
		}
		cases = f.Evidence
		e.Failed[tokens[0]] = append(e.Failed[tokens[0]], f.Keyword)
		often := lists.Filter(f.Sent, func(c stats.Count) bool { return c.N >= stats.MinCases })
		e.Refused[tokens[0]] = append(e.Refused[tokens[0]], lists.Map(often, func(c stats.Count) string { return c.Name })...)
	}
	for _, r := range s.report.Renames {
		if r.Tool == full && r.Enough() {
			e.Names[r.Sent] = r.Meant
		}
	}
	for _, c := range s.report.Confusions {
		name, isOwn := strings.CutPrefix(c.Called, plugin+".")
		if _, exists := s.find(c.Called); exists || !isOwn || !c.Enough() {
			continue
		}
		if e.Names[name] = ""; c.Meant != full {
			e.Names[name] = strings.TrimPrefix(c.Meant, plugin+".")
		}
	}
	return e, cases
}

// examples proposes valid parameters for the examples that a schema refuses: the default or the first value in place
// of an invalid one, or nothing in place of an optional one.
func (s *suggester) examples(plugin string, t *manifest.Tool) {
	compiled, err := schema.CompileUntrusted(t.Params)
	if err != nil {
		return
	}
	for _, x := range t.Examples {
		params, violations := given(x), []schema.Violation(nil)
		if value, err := jsontext.Decode(x.Params, jsontext.Limits{}); err == nil && x.ExitCode == 0 && len(x.Before) == 0 {
			violations, _ = compiled.Validate(value)
		}
		if len(violations) == 0 || params == nil {
			continue
		}
		for _, v := range violations {
			p := paramAt(manifest.Params(t.Params), v.Pointer)
			if p == nil {
				delete(params, strings.TrimPrefix(v.Pointer, "/"))
			} else if params[p.Name] = schemaValue(p); params[p.Name] == nil {
				delete(params, p.Name)
			}
		}
		raw, _ := manifest.Marshal(params) // the values are JSON
		if corrected := x; stats.Valid(compiled, raw) {
			corrected.Params, corrected.Result, corrected.Run = raw, nil, nil
			s.correct(plugin, t, overlay.Edit{Field: overlay.Example, Example: &corrected},
				"the example has "+violations[0].String(), stats.Evidence{})
		}
	}
}
