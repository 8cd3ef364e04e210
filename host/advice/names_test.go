package advice

import (
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestNamesOfNothing looks names up in a catalog without plugins.
func TestNamesOfNothing(t *testing.T) {
	catalog, err := host.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "a", "a.b", "a__b", "browser_click", "mcp__a__b.c"} {
		n := NamesOf(catalog)
		if all, see := n.Meant(name, map[string]any{}, []any{"x"}); n.Knows(name) || len(all) > 0 || see != "" {
			t.Errorf("%q means %v, %q", name, all, see)
		}
		if isParam, isSwitch := n.Option(name, "x"); isParam || isSwitch {
			t.Errorf("%q has the option x", name)
		}
		if e := CheckCall(n, host.Call{Name: name}); e == nil || e.Code != host.NotFound {
			t.Errorf("%q: %v", name, e)
		}
	}
}
