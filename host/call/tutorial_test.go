package call_test

import (
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestReadTutorialCommand parses command lines of tutorials.
func TestReadTutorialCommand(t *testing.T) {
	catalog, err := host.NewCatalog(newFake(t, shop, nil))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"parley --list":                                           "list",
		"parley shop":                                             "list shop",
		"parley shop --list":                                      "list shop",
		"parley shop order --list":                                "list shop.order",
		`parley search "sell tea"`:                                "search sell tea",
		"parley shop --search 'sell tea'":                         "search shop sell tea",
		"parley shop add --describe":                              "describe shop.add",
		"parley shop add --describe --tier 3":                     "describe shop.add tier 3",
		`parley shop add --param title="a b"'c d'e\ f`:            `call shop.add {"title":"a bc de f"}`,
		`parley shop add --param title="a\"b"`:                    `call shop.add {"title":"a\"b"}`,
		"parley shop.add tea":                                     "",
		`parley call shop.add --param 'title=b c'`:                `call shop.add {"title":"b c"}`,
		`parley shop add --param title=tea --param count=3`:       `call shop.add {"count":3,"title":"tea"}`,
		`parley shop add --params '{"title":"tea"}' --timeout 4s`: `call shop.add {"title":"tea"} timeout 4s`,
		"parley shop --listen order.placed":                       "listen shop order.placed",
		"parley shop add --colour red":                            "",
		"parley shop add tea --browser":                           "",
		"parley shop nope":                                        "",
		"parley nope":                                             "",
		"parley":                                                  "",
		"parley call":                                             "",
		"parley search":                                           "",
		"parley shop add 'tea":                                    "",
		"curl https://example.com":                                "",
		"":                                                        "",
	} {
		step, ok := catalog.ReadTutorialCommand(line)
		got := ""
		if ok {
			got = step.String()
		}
		if got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}
