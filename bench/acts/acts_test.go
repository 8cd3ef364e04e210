package main

import (
	"math"
	"regexp"
	"slices"
	"testing"
)

// TestCases checks that there are 60 different cases, each of a kind that has a script.
func TestCases(t *testing.T) {
	all := effectCases()
	for i, e := range all {
		if effectScripts[e.Kind] == "" {
			t.Errorf("%s has no script", e.Kind)
		}
		if slices.Contains(all[:i], e) {
			t.Errorf("%v is there twice", e)
		}
	}
	if len(all) != 60 {
		t.Errorf("there are %d cases, expected 60", len(all))
	}
}

func TestJudge(t *testing.T) {
	const quiet = `{"on":"button \"Go\" abc1","note":"no change seen"}`
	for _, test := range []struct {
		kind, first, next string
		failed, happened  bool // failed: the next answer is a failure
		atReturn, byNext  bool
	}{
		{"dom", `{"on":"x"}`, `{"value":""}`, false, true, true, true},
		{"dom", `{"on":"x"}`, `{"value":""}`, false, false, false, false},     // it tells of the button only
		{"dom", quiet, `{"value":""}`, false, true, false, false},             // it denies what had happened
		{"dom", quiet, `{"before":{"changed":1}}`, false, false, false, true}, // late
		{"nav", `{"url":"http://a/next","title":"next"}`, `{}`, false, false, true, true},
		{"nav", `{"url":"http://a/next","title":""}`, `{}`, false, false, false, false},
		{"nav", quiet, `{"before":{"url":"http://a/next"}}`, false, false, false, true},
		{"nav", quiet, `{"value":"/next"}`, false, false, false, false}, // what the page shows is not told
		{"dialog", quiet, `{"code":"x","message":"dialog: hello from the page"}`, true, false, false, true},
		{"tab", `{"caused":{"new_pages":[{"url":"http://a/next"}]}}`, `{}`, false, false, true, true},
		{"download", quiet, `{"before":{"caused":{"downloads":["effect.bin"]}}}`, false, false, false, true},
	} {
		e := effect{Kind: test.kind}
		atReturn, byNext := e.judge(reply{text: test.first}, reply{test.next, test.failed}, test.happened)
		if atReturn != test.atReturn || byNext != test.byNext {
			t.Errorf("%s %s then %s: %t, %t", test.kind, test.first, test.next, atReturn, byNext)
		}
	}
}

func TestSlope(t *testing.T) {
	if got := slope([]float64{1, 2, 3}, []float64{5, 7, 9}); math.Abs(got-2) > 1e-9 {
		t.Errorf("the slope is %f", got)
	}
	if got := slope([]float64{1}, []float64{5}); got != 0 {
		t.Errorf("the slope of one point is %f", got)
	}
}

func TestCount(t *testing.T) {
	d := soakData{Failures: map[string]int{}, Verbs: map[string]int{}}
	d.count("click", reply{`{"code":"stale"}`, true}, nil)
	d.count("click", reply{`{"code":"internal"}`, true}, nil)
	d.count("click", reply{"panic", true}, nil)
	d.count("get", reply{`{"value":"internal"}`, false}, nil)
	if d.Calls != 4 || d.Failures["stale"] != 1 || len(d.Internal) != 2 || d.Verbs["click"] != 3 {
		t.Errorf("got %+v", d)
	}
}

func TestShownRef(t *testing.T) {
	text := `{"text":"button \"Go\" lah1\n  link \"Fern 417\" lah22 [expanded]\n\"plain text\""}`
	got := shownRef.FindAllStringSubmatch(text, -1)
	if len(got) != 2 || got[0][1] != "lah1" || got[1][1] != "lah22" {
		t.Errorf("got %q", got)
	}
}

// TestCommands checks that no command has a place that is not filled.
func TestCommands(t *testing.T) {
	refs := map[string]string{`button "Go"`: "abc1", `textbox "Name"`: "abc2"}
	for _, p := range append(reads(), verbs("http://a", true)...) {
		for _, c := range []call{p.ours, p.theirs} {
			for _, arg := range c.in(refs, 7) {
				if arg == "" || regexp.MustCompile(`%|^@$`).MatchString(arg) {
					t.Errorf("%s: %q", p.Verb, c.in(refs, 7))
				}
			}
		}
	}
}
