package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPages checks that each library has a page, which reports what the acts on it are judged by.
func TestPages(t *testing.T) {
	for _, l := range slices.Concat(known, fresh) {
		text, err := os.ReadFile(filepath.Join("pages", l.name))
		if err != nil {
			t.Error(err)
			continue
		}
		without := strings.Fields(l.without)
		for _, a := range acts {
			report := a.report()
			mark := regexp.MustCompile(`["'=.]` + report + `\b`)
			if report == "tooltip" {
				mark = regexp.MustCompile("Helpful text")
			}
			if mark.Match(text) == slices.Contains(without, report) {
				t.Errorf("%s: either it reports %q, or it is without", l.name, report)
			}
			if report == "rating" && !slices.Contains(without, report) && l.stars == "" {
				t.Errorf("the stars of %s have no name", l.name)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		refused, suggested, right bool
		want                      outcome
	}{
		{false, false, true, right},
		{false, true, true, byNext},
		{true, false, false, refused},
		{true, true, false, refused},
		{false, false, false, wrong},
		{false, true, false, wrong},
		{true, false, true, misreported},
	} {
		if got := judge(test.refused, test.suggested, test.right); got != test.want {
			t.Errorf("refused %t, suggested %t, right %t: %c, expected %c", test.refused, test.suggested, test.right, got,
				test.want)
		}
	}
}

func TestSuggestion(t *testing.T) {
	next := []string{"parley page click --describe", "parley page snapshot --focus abc1", "parley page select abc1 Sweden",
		"parley page click abc2"}
	if got := suggestion(next); got != next[2] {
		t.Errorf("the suggestion is %q", got)
	}
	if got := suggestion(next[:2]); got != "" {
		t.Errorf("%q only looks", got)
	}
}

func TestPrint(t *testing.T) {
	var results []result
	for _, l := range slices.Concat(known, fresh) {
		for _, a := range acts {
			results = append(results, result{l.title(), a.name, absent, ""})
		}
	}
	results[0].outcome, results[1].outcome = right, byNext
	results[2] = result{results[2].library, results[2].act, wrong, "it did not"}
	var out bytes.Buffer
	print(&out, results)
	for _, part := range []string{
		fmt.Sprintf("%d known libraries: 2 of 3 acts right (1 of them by the suggested call), 0 refused, 1 wrong",
			len(known)),
		fmt.Sprintf("%d fresh libraries: 0 of 0", len(fresh)), "W bootstrap/radio: it did not\n",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is not in\n%s", part, &out)
		}
	}
}
