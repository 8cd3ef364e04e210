package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// texts are the texts in which a misstatement may be made.
func (m *misstatement) texts(d *manifest.ToolDocs) string {
	list := []string{d.Brief, d.Description, d.When, d.WhenNot}
	for _, p := range d.Parameters {
		if m.param != nil && p.Name == m.param.Name {
			list = append(list, p.Description)
		}
	}
	return strings.Join(list, "\n")
}

// undamaged returns the documentation without a misstatement, at a tier.
func (m *misstatement) undamaged(tier int) *manifest.ToolDocs {
	return manifest.Describe(&manifest.Manifest{Name: m.tool.plugin, Kind: manifest.KindParley}, &m.tool.doc, tier)
}

// isMade reports whether documentation makes a misstatement. Of a sentence, the core counts, where the documentation
// has it more often than without the misstatement; of a default, which is a valid value, the whole sentence.
func (m *misstatement) isMade(d *manifest.ToolDocs) bool {
	has := func(e manifest.ExampleDoc, name string) bool {
		value := given([]manifest.ExampleDoc{e}, name)
		return value != nil && (m.form != formValue || string(value) == string(m.value))
	}
	switch m.form {
	case formBrief:
		return d.Brief == m.other.doc.Docs.Brief
	case formWhen:
		return countWord(d.WhenNot, m.wrong) > 0
	case formDeprecated:
		return countWord(d.DeprecationMessage, m.wrong) > 0
	case formValue:
		return slices.ContainsFunc(d.Examples, func(e manifest.ExampleDoc) bool { return has(e, m.param.Name) })
	case formParameter:
		return slices.ContainsFunc(d.Examples, func(e manifest.ExampleDoc) bool { return has(e, m.wrong) })
	case formUseless:
		return len(d.Examples) > 0 && has(d.Examples[0], m.param.Name)
	case formDefault:
		return countWord(m.texts(d), strings.TrimRight(m.text, ".")) > 0
	}
	return countWord(m.texts(d), m.core) > countWord(m.texts(m.undamaged(d.Tier)), m.core)
}

var letter = regexp.MustCompile(`[A-Za-z0-9_]`)

// countWord counts words, in any case, that are not a part of longer ones.
func countWord(text, word string) (n int) {
	text, word = strings.ToLower(text), strings.ToLower(word)
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 || word == "" {
			return n
		}
		start, end := from+i, from+i+len(word)
		if !letter.MatchString(text[max(0, start-1):start]) && !letter.MatchString(text[end:min(len(text), end+1)]) {
			n++
		}
		from = start + 1
	}
}

// What became of a misstatement.
const (
	repaired  = iota // it is no longer made, all that was right is still said, and nothing else is wrong
	remains          // it is still made, or a torn sentence is left of it, though the tool was edited
	untouched        // it is still made, and the tool was not edited
	harmed           // something that was right is no longer said, or another number than any in the documentation is
)

// torn matches what is left of a sentence from which a word was taken.
var torn = regexp.MustCompile("(?i)\\b(to|of|than|most|is|in|as|by|or|and|between|from|the|a|for|with)" +
	"\\s*([.,;:)]|$)|" + "\\(\\s*\\)|\"\"|``|\\s[.,;](\\s|$)")

var aNumber = regexp.MustCompile(`\b\d+\b`)

// verdict returns what became of a misstatement, by what the host delivers now.
func (m *misstatement) verdict(d *manifest.ToolDocs, edited bool) int {
	if !edited {
		return untouched
	}
	before := m.undamaged(manifest.Tier3)
	now := allTexts(d)
	for sentence := range strings.SplitSeq(allTexts(before), "\n") {
		isReplaced := m.form == formBrief && strings.Contains(before.Brief+before.Description, sentence) ||
			m.form == formWhen && strings.Contains(before.WhenNot, sentence) ||
			m.instead && m.param != nil && strings.Contains(kindOf(m.param.Name).says, sentence)
		if !isReplaced && !strings.Contains(now, sentence) {
			return harmed
		}
	}
	known := allTexts(before) + "\nISO 8601\n" + m.text + string(m.tool.doc.Params)
	for sentence := range strings.SplitSeq(now, "\n") {
		for _, n := range aNumber.FindAllString(sentence, -1) {
			if countWord(known, n) == 0 && !strings.Contains(sentence, "Takes") {
				return harmed
			}
		}
	}
	isTorn := len(torn.FindAllString(now, -1)) > len(torn.FindAllString(allTexts(before), -1))
	if m.isMade(d) || isTorn {
		return remains
	}
	return repaired
}

// allTexts returns the sentences of documentation, each in a line.
func allTexts(d *manifest.ToolDocs) string {
	list := []string{d.Brief, d.Description, d.When, d.WhenNot}
	for _, p := range d.Parameters {
		list = append(list, p.Description)
	}
	text := strings.ReplaceAll(strings.Join(list, "\n"), ". ", "\n")
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(strings.TrimSpace(lines[i]), ".")
	}
	return strings.Join(lines, "\n")
}

// beliefs is what was counted about misstatements, for one seed or for several.
type beliefs struct {
	forms    map[string]*belief // by form, in a half
	tools    [2]int             // that make no misstatement
	false    [2]int             // edits of these
	rules    [2]map[string]int  // these edits, by rule
	examples []string           // what was not repaired, to read
}

type belief struct {
	verdicts             [4]int
	worse                int // fewer tasks go right in round 2 than in round 1, beyond chance
	before, after, right tally
}

func (b *belief) add(o *belief) {
	for i := range b.verdicts {
		b.verdicts[i] += o.verdicts[i]
	}
	b.worse += o.worse
	b.before.add(o.before)
	b.after.add(o.after)
	b.right.add(o.right)
}

// isWorse reports whether a share fell by more than chance does in one of about 2,000 cases.
func isWorse(before, after tally) bool {
	p := float64(before.first+after.first) / float64(max(1, before.of+after.of))
	deviation := math.Sqrt(p * (1 - p) * (1/float64(max(1, before.of)) + 1/float64(max(1, after.of))))
	return before.share()-after.share() > 3.3*deviation
}

// believe runs two rounds with misstatements and one with the same sentences where they are true, and counts in out.
// Without sessions there are no rounds: the edits are those that need no calls.
func (out *beliefs) believe(ctx context.Context, c *catalog, seed uint64, sessions int) error {
	dir, err := os.MkdirTemp("", "parley-learning-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	wrong, right := map[*tool]*damage{}, map[*tool]*damage{}
	for t, m := range misstate(c, rand.New(rand.NewPCG(seed, 1))) {
		wrong[t], right[t] = &damage{tool: t, wrong: m}, &damage{tool: t, wrong: m, isTrue: true}
	}
	w, twin := newWorld(c, wrong, filepath.Join(dir, "wrong"), misreadRate), newWorld(c, right,
		filepath.Join(dir, "right"), misreadRate)
	before, err := w.round(ctx, "before", sessions, seed)
	if err != nil {
		return err
	}
	proposed, err := w.suggestions()
	if err != nil {
		return err
	}
	made, err := w.apply(ctx, proposed)
	if err != nil {
		return err
	}
	after, err := w.round(ctx, "after", sessions, seed)
	if err != nil {
		return err
	}
	intact, err := twin.round(ctx, "before", sessions, seed)
	if err != nil {
		return err
	}
	falseEdits, err := twin.suggestions()
	if err != nil {
		return err
	}
	h, err := newHost(w.overlays.Wrap(w.providers))
	if err != nil {
		return err
	}
	for _, t := range c.wanted() {
		if wrong[t] == nil {
			continue
		}
		m, part := wrong[t].wrong, half(t.name())
		d, err := h.Describe(ctx, caller.Principal{Name: "judge"}, t.name(), manifest.Tier3)
		if err != nil {
			return err
		}
		b := &belief{}
		v := m.verdict(d.ToolDocs, len(made.applied[t]) > 0)
		b.verdicts[v]++
		for _, pair := range [][2]any{{&b.before, before[t]}, {&b.after, after[t]}, {&b.right, intact[t]}} {
			if n := pair[1].(*tally); n != nil {
				*pair[0].(*tally) = *n
			}
		}
		if len(made.applied[t]) > 0 && isWorse(b.before, b.after) {
			b.worse++
		}
		out.at(part, m.form).add(b)
		out.tools[part]++
		if part == 0 && v != repaired {
			out.examples = append(out.examples, m.explain(v, d.ToolDocs, made))
		}
	}
	for _, s := range falseEdits {
		t := w.state.tools[s.Plugin+"."+s.Edit.Tool]
		out.false[half(t.name())]++
		out.rules[half(t.name())][s.Rule]++
		if half(t.name()) == 0 {
			out.examples = append(out.examples, fmt.Sprintf("false %s: %s %s: %s -> %s", s.Rule, t.name(), s.Edit.Field,
				right[t].wrong.truth(), s.Edit.Value))
		}
	}
	return nil
}

// explain tells what became of a misstatement, for somebody who improves rules.
func (m *misstatement) explain(verdict int, d *manifest.ToolDocs, made *edits) string {
	var b strings.Builder
	name := ""
	if m.param != nil {
		name = m.param.Name
	}
	fmt.Fprintf(&b, "%s: %s: %s %s: %q", [...]string{"repaired", "REMAINS", "untouched", "HARMED"}[verdict], m.form,
		m.tool.name(), name, m.text)
	for _, e := range made.applied[m.tool] {
		fmt.Fprintf(&b, "\n    %s %s %s = %q", e.Origin, e.Field, e.Param, e.Value)
	}
	for _, r := range made.refused {
		if r.Edit.Tool == m.tool.doc.Name {
			fmt.Fprintf(&b, "\n    refused %s %s %q: %s", r.Edit.Origin, r.Edit.Field, r.Edit.Value, r.Why)
		}
	}
	if verdict == harmed {
		fmt.Fprintf(&b, "\n    %q", allTexts(d))
	}
	return b.String()
}

func (out *beliefs) at(part int, form string) *belief {
	key := fmt.Sprintf("%d %s", part, form)
	if out.forms[key] == nil {
		out.forms[key] = &belief{}
	}
	return out.forms[key]
}

// sum returns the counts of a half.
func (out *beliefs) sum(part int) (all belief) {
	for _, form := range forms {
		all.add(out.at(part, form))
	}
	return all
}

func (b *belief) made() int { return b.verdicts[0] + b.verdicts[1] + b.verdicts[2] + b.verdicts[3] }

func (out *beliefs) repaired(part int) string {
	all := out.sum(part)
	return share(all.verdicts[repaired], all.made())
}

// report returns the table of a half: a row for each form, and one for all of them.
func (out *beliefs) report(part int) string {
	var b strings.Builder
	b.WriteString("| misstatement | made | repaired | share | still wrong | untouched | harmful | first try: round 1 | " +
		"round 2 | undamaged |\n|---|---|---|---|---|---|---|---|---|---|\n")
	row := func(name string, k *belief) {
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %d | %d | %d | %.1f %% | %.1f %% | %.1f %% |\n", name, k.made(),
			k.verdicts[repaired], share(k.verdicts[repaired], k.made()), k.verdicts[remains], k.verdicts[untouched],
			k.verdicts[harmed]+k.worse, 100*k.before.share(), 100*k.after.share(), 100*k.right.share())
	}
	for _, form := range slices.Sorted(slices.Values(forms)) {
		row(form, out.at(part, form))
	}
	all := out.sum(part)
	row("**all**", &all)
	fmt.Fprintf(&b, "\nEdited and still wrong: %s. False edits: %d of %d undamaged tools, %.1f in 100; by rule: %s.\n",
		share(all.verdicts[remains], all.made()), out.false[part], out.tools[part],
		in100(out.false[part], out.tools[part]), byRule(out.rules[part]))
	return b.String()
}

// listed completes the tools of third parties by what lists of tools also have: defaults, and parameters with a unit in
// their name.
func (c *catalog) listed() error {
	extra := []clutterParam{
		{"timeout_ms", `{"type":"integer","minimum":100,"maximum":600000,"description":"How long to wait."}`},
		{"wait_seconds", `{"type":"integer","minimum":1,"maximum":600,"description":"How long to wait for it."}`},
		{"max_size_kb", `{"type":"integer","minimum":1,"maximum":100000,"description":"What is larger is left out."}`},
		{"keep_minutes", `{"type":"integer","minimum":1,"maximum":50000,"description":"How long it is kept."}`},
	}
	for _, t := range c.tools {
		if t.isShipped {
			continue
		}
		n := number(t.name())
		for i := range t.params {
			p := &t.params[i]
			if !p.Required && (number(t.name()+p.Name)/7)%2 == 0 &&
				(len(p.Enum) > 1 || p.keywords.Maximum != nil) {
				t.doc.Params = jsontext.Set(t.doc.Params, []string{"properties", p.Name}, "default", p.good[0])
			}
		}
		if e := extra[n%4]; (n/11)%3 == 0 && !t.has(e.name) {
			t.doc.Params = jsontext.Set(t.doc.Params, []string{"properties"}, e.name, []byte(e.schema))
		}
		t.doc.Examples = nil
		if err := t.readParams(); err != nil {
			return err
		}
		t.dropUnstated()
	}
	return nil
}

func newBeliefs() *beliefs {
	return &beliefs{forms: map[string]*belief{}, rules: [2]map[string]int{{}, {}}}
}
