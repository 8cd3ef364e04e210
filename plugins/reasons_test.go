package plugins

import (
	"testing"

	"github.com/parley-tools/parley/internal/reasons"
	"github.com/parley-tools/parley/manifest"
)

// TestAdviceFitsEachReason compares what the shipped plugins advise for each reason to end with an exit code with
// testdata/reasons.txt. The suggestion of a code is said for all reasons of that code; one that fits only some of them
// belongs into their messages.
func TestAdviceFitsEachReason(t *testing.T) {
	var got []string
	for _, f := range shipped(t) {
		m, err := manifest.Load(f.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		advice := map[string]string{}
		for _, c := range m.ExitCodes {
			advice[c.Name] = c.Suggestion
		}
		for _, r := range reasons.In(t, m.Name, nil) {
			got = append(got, m.Name+" "+r.Line(advice[r.Code]))
		}
	}
	reasons.Compare(t, got, false)
}
