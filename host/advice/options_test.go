package advice_test

import (
	"fmt"
	"testing"

	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/option"
)

// TestOptionsOfOthers checks that an option which only the command line has is left out, whatever its value would mean
// for another option: "isolate": "none" is not "wait": "none".
func TestOptionsOfOthers(t *testing.T) {
	for _, name := range []string{"session", "out", "until", "isolate"} {
		for _, value := range []any{"none", "load", "accept", "10s", true, "a.b"} {
			c := advice.CorrectOptions(map[string]any{name: value, "jq": "."})
			if got := fmt.Sprint(c.Value); got != "map[jq:.]" || c.Complete || len(c.Changes) != 1 {
				t.Errorf("%s=%v became %s, complete %v, changes %v", name, value, got, c.Complete, c.Changes)
			}
		}
		if _, err := option.Parse([]byte(fmt.Sprintf(`{%q: "none"}`, name))); err == nil || !option.IsElsewhere(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
