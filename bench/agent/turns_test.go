package main

import (
	"testing"

	"github.com/parley-tools/parley/internal/testhome"
)

// TestTurns counts what an oracle loses in each mode. In the 19 tasks that is at most a tenth of the turns of full
// mode. The others were written by somebody who had not seen what a search finds: no more may be lost than today.
func TestTurns(t *testing.T) {
	sets, err := consultAll(t.Context(), binary(t), testhome.New(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, most := range []float64{1.10, 1.23} {
		full := float64(sets[i][0].sum())
		for j, l := range sets[i] {
			if got := float64(l.sum()) / full; got > most {
				t.Errorf("%s, %s: %.2f of the turns of full, at most %.2f", oracleSets[i].name, oracleModes[j], got, most)
			}
		}
	}
	current(t, turnsSection, turnsTable(sets))
}
