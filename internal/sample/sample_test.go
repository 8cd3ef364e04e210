package sample

import "testing"

func TestOneIn(t *testing.T) {
	t.Setenv("PARLEY_HAMMER", "")
	accept := OneIn(t, 4)
	for turn := range 100 {
		accepted := 0
		for range 4 {
			if accept() {
				accepted++
			}
		}
		if accepted != 1 {
			t.Fatalf("%d cases of the four in turn %d are accepted", accepted, turn)
		}
	}
	t.Setenv("PARLEY_HAMMER", "1")
	accept = OneIn(t, 4)
	for range 10 {
		if !accept() {
			t.Fatal("a case is left out")
		}
	}
}
