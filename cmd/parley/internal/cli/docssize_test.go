package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

// TestDocsTokens checks that traces count documentation in the form in which it was printed.
func TestDocsTokens(t *testing.T) {
	whole := func(out, _ string) string { return out }
	errorDocs := func(_, errs string) string {
		var e struct {
			Error struct{ Docs json.RawMessage }
		}
		_ = json.Unmarshal([]byte(errs), &e)
		return string(e.Error.Docs)
	}
	errorText := func(_, errs string) string {
		_, docs, _ := strings.Cut(errs, "Detailed parameter documentation:\n")
		docs, _, _ = strings.Cut(docs, "\nTip:")
		return docs
	}
	foundDocs := func(out, _ string) string {
		var e struct {
			Data struct{ Docs []json.RawMessage }
		}
		if json.Unmarshal([]byte(out), &e) != nil || len(e.Data.Docs) == 0 {
			return ""
		}
		return string(e.Data.Docs[0])
	}
	foundText := func(out, _ string) string {
		_, docs, _ := strings.Cut(out, "\n")
		docs, _, _ = strings.Cut(docs, "\n(")
		return docs
	}
	batchDocs := func(out, _ string) string { return errorDocs("", out) }
	for _, tc := range []struct {
		args []string
		tty  bool
		in   string
		sent func(out, errs string) string
	}{
		{args: []string{"text", "hash", "--describe"}, sent: whole},
		{args: []string{"text", "hash", "--describe", "--tier", "3", "--json"}, sent: whole},
		{args: []string{"text", "hash", "--describe"}, tty: true, sent: whole},
		{args: []string{"text", "hash", "--describe", "--json"}, tty: true, sent: whole},
		{args: []string{"text", "hash", "--help"}, sent: whole},
		{args: []string{"text", "hash", "--help", "--json"}, sent: whole},
		{args: []string{"text", "hash", "--params", "{}"}, sent: errorText},
		{args: []string{"text", "hash", "--params", "{}", "--json"}, sent: errorDocs},
		{args: []string{"batch", "-"}, in: `{"tool":"text.hash","params":{}}`, sent: batchDocs},
		{args: []string{"search", "hash", "--limit", "1", "--detail", "full", "--json"}, sent: foundDocs},
		{args: []string{"search", "hash", "--limit", "1", "--detail", "full"}, sent: foundText},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			home := t.TempDir()
			var out, errs strings.Builder
			Main(tc.args, &command.Streams{In: strings.NewReader(tc.in), Out: &out, Err: &errs, OutTTY: tc.tty, Width: 100,
				Env: func(name string) string { return map[string]string{"PARLEY_HOME": home}[name] }})
			sent := tc.sent(out.String(), errs.String())
			if sent == "" {
				t.Fatalf("no documentation in %s%s", out.String(), errs.String())
			}
			files, _ := filepath.Glob(filepath.Join(home, "state", "traces", "*.jsonl"))
			if len(files) != 1 {
				t.Fatalf("%d files of traces", len(files))
			}
			traces, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for line := range strings.Lines(string(traces)) {
				var r struct {
					DocsTokens int `json:"docs_tokens"`
				}
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				got += r.DocsTokens
			}
			if want := manifest.Tokens(sent); got < want-1 || got > want+1 { // a line break may count or not
				t.Errorf("recorded %d tokens, printed %d: %s", got, want, sent)
			}
		})
	}
}
