package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
)

// TestSearchBudget checks what the answers of search_tools with three results take, with queries that no text of a tool
// was written from. The templates are in them.
func TestSearchBudget(t *testing.T) {
	data, err := os.ReadFile("../../../../bench/search/queries.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	client := dialMCP(t, testhome.New(t), "--docs", "minimal")
	var sizes []int
	templates := 0
	for line := range strings.Lines(string(data)) {
		var q struct{ Query json.RawMessage }
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		r := client.request("tools/call", `{"name":"search_tools","arguments":{"query":`+string(q.Query)+`,"limit":3}}`)
		var found struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(r.Result, &found); err != nil || len(found.Content) == 0 {
			t.Fatalf("%s: %s, %v", q.Query, r.Result, err)
		}
		sizes = append(sizes, manifest.Tokens(found.Content[0].Text))
		templates += strings.Count(found.Content[0].Text, "\n  {")
	}
	slices.Sort(sizes)
	n := len(sizes)
	if n < 200 || sizes[n/2] > 220 || sizes[n*95/100] > 400 {
		t.Errorf("%d answers: %d tokens at the median, %d at the 95th percentile; at most 220 and 400", n, sizes[n/2],
			sizes[n*95/100])
	}
	if templates < 5*n/2 {
		t.Errorf("%d answers have %d templates", n, templates)
	}
	t.Logf("%d answers: %d tokens at the median, %d at the 95th percentile", n, sizes[n/2], sizes[n*95/100])
}
