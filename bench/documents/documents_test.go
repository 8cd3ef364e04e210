package main

import (
	"os"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/api/openapi"
	"github.com/parley-tools/parley/internal/sample"
)

// TestDocument checks that every operation of a document with all styles and bodies can be called, and that wrong calls
// lead back to the right ones.
func TestDocument(t *testing.T) {
	chosen := sample.OneIn(t, 2)
	for _, file := range []string{"orders.yaml", "files.json"} {
		data, err := os.ReadFile("../../host/api/openapi/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		plugin, report, err := openapi.Derive(data, openapi.Options{Server: "https://server.invalid"})
		if err != nil {
			t.Fatal(err)
		}
		h, err := newRehearsal(plugin)
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for i := range plugin.Tools {
			tool := &plugin.Tools[i]
			if !chosen() {
				continue
			}
			if reason := h.call(t.Context(), tool); reason != "" {
				t.Errorf("%s: %s", tool.Name, reason)
			}
			for _, o := range h.mistakes(t.Context(), tool) {
				if made++; !o.recovered {
					t.Error(o)
				}
			}
		}
		t.Logf("%s: %d operations, %d mistakes", file, report.Operations, made)
		if made == 0 {
			t.Errorf("%s: no mistake was made", file)
		}
	}
}

func TestTable(t *testing.T) {
	m := &measured{document: document{name: "a", wrong: true}, version: "3.0.0", cpu: 4e9, callable: 1,
		refused: "Error: no", failures: []string{"b.c: why"},
		outcomes: []outcome{{kind: kinds[0].name, recovered: true}, {kind: kinds[1].name}}}
	m.report.Operations = 2
	text := table([]*measured{m})
	for _, part := range []string{
		"| a | 3.0.0 | 2 | 1 (50.0 %) | 0 | 0 | 0 | 4.0 (over) | 0 | 0 | 0.0 |\n", "- a: b.c: why\n", "- a: Error: no\n",
		"| a | 1 of 1 (100.0 %) | 0 of 1 (0.0 %) | none | none | 1 of 2 (50.0 %) |\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
}
