// Package sample selects cases for tests that have too many to run all of them each time.
package sample

import (
	"math/rand/v2"
	"os"
	"testing"
)

// OneIn returns a function that accepts one of every n cases, chosen by a seed that it logs. With PARLEY_HAMMER set, it
// accepts all.
func OneIn(t testing.TB, n int) func() bool {
	t.Helper()
	if os.Getenv("PARLEY_HAMMER") != "" {
		return func() bool { return true }
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	next, chosen := 0, 0
	return func() bool {
		if next%n == 0 {
			chosen = next + random.IntN(n)
		}
		next++
		return next-1 == chosen
	}
}
