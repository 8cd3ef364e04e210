package store

import "testing"

// TestOlder: each version in the list precedes all that follow.
func TestOlder(t *testing.T) {
	order := []string{
		"0.0.1", "0.9.0", "0.10.0", "1.0.0-0", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.1.1",
		"1.0.0-alpha.beta",
		"1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "2.0.0", "10.0.0", "99999999999999999999999.0.0",
		"100000000000000000000000.0.0",
	}
	for i, a := range order {
		for j, b := range order {
			if got := Older(a, b); got != (i < j) {
				t.Errorf("Older(%s, %s) is %v", a, b, got)
			}
		}
	}
	for _, same := range [][2]string{{"1.0.0", "1.0.0+build"}, {"1.0.0+a", "1.0.0+b"}, {"1.0.0-rc+a", "1.0.0-rc+b"},
		{"1.00.0", "1.0.0"}} {
		if Older(same[0], same[1]) || Older(same[1], same[0]) {
			t.Errorf("%v are not the same", same)
		}
	}
}
