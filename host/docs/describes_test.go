package docs

import "testing"

func TestDescribes(t *testing.T) {
	for _, c := range []struct {
		text, name string
		want       bool
	}{
		{"", "url", false}, {"The url.", "url", false}, {"URL", "url", false}, {"node id", "nodeId", false},
		{"The value of the node id", "nodeId", false}, {"enable.", "Network.enable", false},
		{"Enables the network.", "Network.enable", false}, {"ignore case", "ignore_case", false},
		{"Page to open", "url", true}, {"Identifier of the node", "nodeId", true}, {"Maximum in bytes", "max", true},
	} {
		if got := describes(c.text, c.name); got != c.want {
			t.Errorf("%q of %s: %v", c.text, c.name, got)
		}
	}
}
