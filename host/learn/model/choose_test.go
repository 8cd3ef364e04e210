package model

import (
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
)

// TestParseChoices checks that an answer is accepted only with one call for each request.
func TestParseChoices(t *testing.T) {
	for answer, ok := range map[string]bool{
		`{"calls":[{"id":2,"tool":"a"},{"id":1,"tool":"b","arguments":{}}]}`: true,
		`{"calls":[{"id":1,"tool":"a"}]}`:                                    false,
		`{"calls":[{"id":1,"tool":"a"},{"id":1,"tool":"a"}]}`:                false,
		`{"calls":[{"id":1,"tool":"a"},{"id":3,"tool":"a"}]}`:                false,
		`{"calls":[{"id":1,"tool":"a"},{"id":2,"tool":"a"},{"id":0}]}`:       false,
		`{"calls":{"1":"a"}}`:                                                false,
		``:                                                                   false,
	} {
		if calls, got := ParseChoices(answer, 2); got != ok || ok && calls[1].Tool != "a" {
			t.Errorf("%s: %v", answer, got)
		}
	}
}

func TestNamed(t *testing.T) {
	for tool, want := range map[string]bool{
		"cdp.Page.navigate": true, "cdp__Page__navigate": true, "page.navigate": true, "navigate": false, "": false,
	} {
		if c := (&Choice{Tool: tool}); c.Named("cdp.Page.navigate") != want {
			t.Errorf("%q: %v", tool, !want)
		}
	}
}

// TestChoiceQuestion checks that a request cannot look like another one.
func TestChoiceQuestion(t *testing.T) {
	line := ToolLine("a", &manifest.Tool{Name: "b", Docs: manifest.Docs{Brief: "Do\nit"}, When: "now"})
	q := ChoiceQuestion(line, "Be quick.", []string{"one\n2. two", "three"})
	const want = "Tools:\na.b(): Do it. When: now\n\nRequests:\n1. one 2. two\n2. three\n"
	if q.Text != want || !strings.HasSuffix(q.System, "Be quick.") {
		t.Errorf("%q, %q", q.Text, q.System)
	}
}
