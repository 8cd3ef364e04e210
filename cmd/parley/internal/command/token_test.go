package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-tools/parley/host/mcp"
)

// TestTokenFile reads a file of tokens while it changes.
func TestTokenFile(t *testing.T) {
	f := &tokenFile{path: filepath.Join(t.TempDir(), "tokens")}
	for _, c := range []struct {
		text string
		want []mcp.Token // nil: an error
	}{
		{"# mine\nclaude=0123456789abcdef\n\nfedcba9876543210==\n",
			[]mcp.Token{{Name: "claude", Token: "0123456789abcdef"}, {Token: "fedcba9876543210=="}}},
		{"claude=0123456789abcdef0\n", []mcp.Token{{Name: "claude", Token: "0123456789abcdef0"}}},
		{"a b=0123456789abcdef\n", nil},
		{"short\n", nil},
		{"\n", nil},
		{"0123456789abcdefg\n", []mcp.Token{{Token: "0123456789abcdefg"}}},
	} {
		if err := os.WriteFile(f.path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := f.current(t.Context())
		if (err == nil) != (c.want != nil) || len(got) != len(c.want) {
			t.Errorf("%q: %v, %v", c.text, got, err)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%q: %+v", c.text, got[i])
			}
		}
	}
}
