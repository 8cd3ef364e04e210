package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// TestValuesAreExact sends random texts of all categories of Unicode through a tool that gives them back, by every
// door: each comes back to the byte, and no character is escaped that JSON can hold as it is.
func TestValuesAreExact(t *testing.T) {
	home := testhome.New(t)
	run := func(tty bool, in string, args ...string) string {
		var out, errs strings.Builder
		env := func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }
		if code := Main(args, &command.Streams{In: strings.NewReader(in), Out: &out, Err: &errs, OutTTY: tty,
			Env: env}); code != 0 {
			t.Fatalf("%q exits with %d: %s", args, code, errs.String())
		}
		return out.String()
	}
	client := dialMCP(t, home, "--docs", "full")
	file := filepath.Join(home, "out")
	for seed := range 6 {
		text := randomText(rand.New(rand.NewPCG(uint64(seed), 3)))
		quoted := string(jsontext.Marshal(text))
		params := `{"template":` + quoted + `,"values":{}}`
		check := func(door, got string) {
			var object struct{ Text string }
			if err := json.Unmarshal([]byte(got), &object); err != nil || object.Text != text {
				t.Errorf("%s: got %q, %v; want %q", door, object.Text, err, text)
			}
			if door != "terminal" && !strings.Contains(got, quoted) {
				t.Errorf("%s: %s has escapes that JSON does not require; want %s", door, got, quoted)
			}
		}
		check("pipe", run(false, params, "text", "template", "--params", "-"))
		onTerminal := run(true, params, "text", "template", "--params", "-")
		check("terminal", onTerminal)
		if i := strings.IndexFunc(onTerminal, manifest.Hidden); i >= 0 {
			t.Errorf("a terminal is sent %q", onTerminal[i:])
		}
		reply := run(false, `{"tool":"text.template","params":`+params+`}`, "batch", "-")
		var data struct{ Data json.RawMessage }
		_ = json.Unmarshal([]byte(reply), &data)
		check("batch", string(data.Data))
		run(false, params, "text", "template", "--params", "-", "--jq", ".text", "--out", file)
		if got, _ := os.ReadFile(file); decodedText(got) != text {
			t.Errorf("--out: got %q, want %q", got, quoted)
		}
		run(false, fmt.Sprintf(`{"tool":"text.template","params":%s,"options":{"jq":".text","out":%q}}`, params, file),
			"batch", "-")
		if got, _ := os.ReadFile(file); decodedText(got) != text {
			t.Errorf("out of batch: got %q, want %q", got, quoted)
		}
		var result struct {
			Content           []struct{ Text string }
			StructuredContent struct{ Text string }
		}
		answer := client.request("tools/call", `{"name":"text__template","arguments":`+params+`}`)
		if err := json.Unmarshal(answer.Result, &result); err != nil || len(result.Content) == 0 {
			t.Fatal(err, string(answer.Result))
		}
		check("mcp", result.Content[0].Text)
		if result.StructuredContent.Text != text {
			t.Errorf("structured content: got %q, want %q", result.StructuredContent.Text, text)
		}
	}
}

func decodedText(data []byte) (text string) {
	_ = json.Unmarshal(data, &text)
	return text
}

// randomText returns a text with some characters of every category, and those that encoders and cleaners treat.
func randomText(r *rand.Rand) string {
	all := []rune("<>&\u200c\u200d\u00ad\u202e\ufeff\x00\x1b\x7f\u009b\r\n\t\"\\")
	for _, name := range slices.Sorted(maps.Keys(unicode.Categories)) {
		table := unicode.Categories[name]
		if n := len(table.R32); n > 0 {
			all = append(all, rune(table.R32[r.IntN(n)].Lo))
		}
		if n := len(table.R16); n > 0 {
			all = append(all, rune(table.R16[r.IntN(n)].Hi))
		}
	}
	all = append(all, 'a')
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var b strings.Builder
	for _, c := range all {
		if c < 0xd800 || c > 0xdfff {
			b.WriteRune(c)
		}
	}
	return strings.NewReplacer("{{", "{", "\u2028", "", "\u2029", "").Replace(b.String())
}
