package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
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
	in := `{"jsonrpc":"2.0","id":"0","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"c","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for line := range strings.Lines(string(data)) {
		var q struct{ Query string }
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		query, _ := json.Marshal(q.Query)
		in += fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"search_tools","arguments":{`+
			`"query":%s,"limit":3}}}`, len(in), query) + "\n"
	}
	home := testhome.New(t)
	var out, errs strings.Builder
	env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
	streams := &command.Streams{In: strings.NewReader(in), Out: &out, Err: &errs, Env: env}
	if code := Main([]string{"mcp", "--docs", "minimal"}, streams); code != 0 {
		t.Fatalf("parley mcp exits with %d: %s", code, errs.String())
	}
	var sizes []int
	templates := 0
	for line := range strings.Lines(out.String()) {
		var answer struct {
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatal(err)
		}
		if content := answer.Result.Content; len(content) > 0 {
			sizes = append(sizes, manifest.Tokens(content[0].Text))
			templates += strings.Count(content[0].Text, "\n  {")
		}
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
