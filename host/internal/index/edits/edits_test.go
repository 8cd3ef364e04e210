package edits

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// reference is the textbook algorithm, without the band and the limits of the code.
func reference(a, b string) int {
	far := len(a) + len(b)
	d := make([][]int, len(a)+2)
	for i := range d {
		d[i] = make([]int, len(b)+2)
		d[i][0] = far
		if i > 0 {
			d[i][1] = i - 1
		}
	}
	for j := range d[0] {
		d[0][j] = far
		if j > 0 {
			d[1][j] = j - 1
		}
	}
	var lastRow [256]int
	for i := 1; i <= len(a); i++ {
		lastCol := 0
		for j := 1; j <= len(b); j++ {
			k, l := lastRow[b[j-1]], lastCol
			cost := 1
			if a[i-1] == b[j-1] {
				cost, lastCol = 0, j
			}
			d[i+1][j+1] = min(d[i][j]+cost, d[i+1][j]+1, d[i][j+1]+1, d[k][l]+i-k-1+1+j-l-1)
		}
		lastRow[a[i-1]] = i
	}
	return d[len(a)+1][len(b)+1]
}

func TestDistance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	word := func() string {
		b := make([]byte, r.IntN(10))
		for i := range b {
			b[i] = byte('a' + r.IntN(3))
		}
		return string(b)
	}
	for range 200_000 {
		a, b := word(), word()
		want := reference(a, b)
		for maxDist := 1; maxDist <= 3; maxDist++ {
			if got := Distance([]byte(a), []byte(b), maxDist); got != min(want, maxDist+1) {
				t.Fatalf("%q %q within %d: %d, expected %d", a, b, maxDist, got, min(want, maxDist+1))
			}
			if want <= maxDist && !Possible(Letters([]byte(a)), Letters([]byte(b)), maxDist) {
				t.Fatalf("%q %q: the pre-check by letters excludes distance %d", a, b, want)
			}
		}
	}
	if d := Distance([]byte("ca"), []byte("abc"), 3); d != 2 {
		t.Errorf("ca, abc: %d, expected 2", d)
	}
	if d := Distance([]byte(strings.Repeat("a", 70)), []byte(strings.Repeat("a", 70)), 2); d != 3 {
		t.Errorf("long words: %d, expected 3", d)
	}
}
