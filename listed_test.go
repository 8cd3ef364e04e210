package parley

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/internal/testhome"
)

var update = flag.Bool("update", false, "rewrite listed.txt")

// TestListedTools compares the tools in listed.txt with those that it would have now.
func TestListedTools(t *testing.T) {
	p, err := Open(t.Context(), Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	catalog, err := p.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, provider := range catalog.Providers() {
		key := provider.Info().Digest
		if key == "" {
			key = cdp.Name
		}
		lines, err := mcp.PrepareTools(provider)
		if err != nil {
			t.Fatal(err)
		}
		if !*update && !bytes.Equal(preparedTools(provider), lines) {
			t.Errorf("listed.txt differs from the tools of %s; run go generate .", provider.Info().Name)
		}
		all.WriteString("= " + key + "\n")
		all.Write(lines)
	}
	switch {
	case *update:
		if err := os.WriteFile("listed.txt", all.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	case !bytes.Equal(all.Bytes(), listedTools):
		t.Error("listed.txt has other tools, too; run go generate .")
	}
}
