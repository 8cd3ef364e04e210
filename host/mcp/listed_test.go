package mcp_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/internal/testhome"
)

// TestListedTools compares the tools in listed.txt with those that it would have now.
func TestListedTools(t *testing.T) {
	p, err := parley.Open(t.Context(), parley.Config{Home: testhome.New(t)})
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
		lines, err := mcp.PrepareTools(provider)
		if err != nil {
			t.Fatal(err)
		}
		if !*update && !bytes.Equal(mcp.PreparedTools(provider), lines) {
			t.Errorf("listed.txt differs from the tools of %s; run go generate ./host/mcp", provider.Info().Name)
		}
		all.WriteString("= " + mcp.ListedKey(provider) + "\n")
		all.Write(lines)
	}
	switch {
	case *update:
		if err := os.WriteFile("listed.txt", all.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	case !bytes.Equal(all.Bytes(), mcp.ListedTools):
		t.Error("listed.txt has other tools, too; run go generate ./host/mcp")
	}
}
