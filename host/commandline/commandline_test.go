package commandline

import (
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// plugin is a provider that can only be looked up.
type plugin struct {
	host.Provider
	m *manifest.Manifest
}

func (p plugin) Info() host.Info                          { return host.Info{Name: p.m.Name} }
func (p plugin) Features() host.Features                  { return host.Features{} }
func (p plugin) Groups() ([]host.GroupLine, error)        { return []host.GroupLine{{Name: "order"}}, nil }
func (p plugin) Segment() ([]byte, error)                 { return nil, nil }
func (p plugin) Names() ([]string, error)                 { return nil, nil }
func (p plugin) Tool(name string) (*manifest.Tool, error) { return p.m.Tool(name), nil }

// TestRead parses command lines of tutorials.
func TestRead(t *testing.T) {
	catalog, err := host.NewCatalog(plugin{m: &manifest.Manifest{Name: "shop", Tools: []manifest.Tool{{Name: "add",
		Params: []byte(`{"type":"object","properties":{"title":{"type":"string"},"count":{"type":"integer"}}}`)}}}})
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
		"parley shop --list > $HOME/list":                         "",
		"curl https://example.com":                                "",
		"":                                                        "",
	} {
		step, ok := Read(catalog, line)
		got := ""
		if ok {
			got = step.String()
		}
		if got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}
