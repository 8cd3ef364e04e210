package host_test

import (
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestCommand reads what lines for a shell would do.
func TestCommand(t *testing.T) {
	catalog, err := host.NewCatalog(newFake(t, shop, nil))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"parley --list":                        "list",
		"parley shop":                          "list shop",
		"parley shop --list":                   "list shop",
		"parley shop order --list":             "list shop.order",
		`parley search "sell tea"`:             "search  sell tea",
		"parley shop --search 'sell tea'":      "search shop sell tea",
		"parley shop add --describe":           "describe shop.add  --describe",
		"parley shop order.list --tier 3":      "call shop.order.list  --tier 3",
		"parley shop.add tea":                  "call shop.add  tea",
		`parley call shop.add --param 'a=b c'`: "call shop.add  --param a=b c",
		"parley shop nope":                     "",
		"parley nope":                          "",
		"parley":                               "",
		"parley call":                          "",
		"parley search":                        "",
		"parley shop --listen order":           "",
		"parley shop add 'tea":                 "",
		"curl https://example.com":             "",
		"":                                     "",
	} {
		c, ok := catalog.Command(line)
		got := ""
		if ok {
			got = c.Op
			if c.At.Plugin != "" || c.Query != "" {
				got += " "
			}
			if c.At.Plugin != "" {
				got += c.At.Name()
			}
			if c.Query != "" {
				got += " " + c.Query
			}
			if c.Op == "call" || c.Op == "describe" {
				got += "  " + strings.Join(c.Rest, " ")
			}
		}
		if got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}
