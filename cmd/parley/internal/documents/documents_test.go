package documents

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

var update = flag.Bool("update", false, "write documents.gz")

// TestDocuments compares the embedded documents with docs/ of the tree, and limits their size.
func TestDocuments(t *testing.T) {
	paths, err := filepath.Glob("../../../../docs/*.md")
	if err != nil || len(paths) < 9 {
		t.Fatal(err, paths)
	}
	want := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > maxDocument {
			t.Errorf("%s has %d bytes, at most %d", path, len(text), maxDocument)
		}
		want[strings.TrimSuffix(filepath.Base(path), ".md")] = string(text)
	}
	if *update {
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, _ = w.Write(raw)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("documents.gz", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !maps.Equal(documents(), want) {
		t.Error("documents.gz is not docs/; run go generate ./cmd/parley/internal/documents")
	}
	if len(documentsGzip) > 150_000 {
		t.Errorf("documents.gz has %d bytes", len(documentsGzip))
	}
}

// TestRenderDocument checks what becomes of the parts of a document in a pipe.
func TestRenderDocument(t *testing.T) {
	const text = "# Title\n\nSee [the policy](policy.md#x), `a`.\n<!-- made -->\n```sh x\n# no heading [a](b)\n```\n#tag\n"
	const want = "Title\n\nSee the policy, `a`.\n    # no heading [a](b)\n#tag\n"
	var b strings.Builder
	renderDocument(command.NewApp(&command.Streams{Env: func(string) string { return "" }}, nil).Page(&b), text)
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
