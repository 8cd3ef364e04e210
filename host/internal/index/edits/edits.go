// Package edits compares words of an index by the typing mistakes between them. It compares thousands of words for one
// search, so it works on bytes, and only as far as a limit.
package edits

import "math/bits"

// Letters returns the set of letters of a word: one bit each for a to z, one for all digits, five for the rest.
func Letters(word []byte) uint32 {
	var set uint32
	for _, c := range word {
		switch {
		case c >= 'a' && c <= 'z':
			set |= 1 << (c - 'a')
		case c >= '0' && c <= '9':
			set |= 1 << 26
		default:
			set |= 1 << (27 + c%5)
		}
	}
	return set
}

// Possible is a cheap test before [Distance], of the [Letters] of two words: one edit removes at most one letter from
// the set and adds at most one.
func Possible(a, b uint32, maxDist int) bool {
	return bits.OnesCount32(a&^b) <= maxDist && bits.OnesCount32(b&^a) <= maxDist
}

// Distance returns the unrestricted Damerau-Levenshtein distance of two words in bytes, or maxDist+1 as soon as it must
// be larger than maxDist. It returns maxDist+1 for words over 64 bytes.
func Distance(a, b []byte, maxDist int) int {
	const limit = 64
	far := maxDist + 1
	if len(a) > limit || len(b) > limit || len(a)-len(b) > maxDist || len(b)-len(a) > maxDist {
		return far
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return min(max(len(a), len(b)), far)
	}
	// d[i][j] is the distance of a[:i] and b[:j]. Cells outside the band of width maxDist around the diagonal are far.
	var d [limit + 1][limit + 1]uint8
	for i := 0; i <= len(a); i++ {
		d[i][0] = uint8(i)
	}
	for j := 0; j <= len(b); j++ {
		d[0][j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		lo, hi := max(1, i-maxDist), min(len(b), i+maxDist)
		if lo > 1 {
			d[i][lo-1] = uint8(far)
		}
		best := uint8(far)
		for j := lo; j <= hi; j++ {
			cost := uint8(1)
			if a[i-1] == b[j-1] {
				cost = 0
			}
			v := min(d[i-1][j-1]+cost, d[i][j-1]+1, d[i-1][j]+1)
			if i > 1 && j > 1 && v > 1 {
				v = min(v, swapped(a, b, i, j, maxDist, &d))
			}
			d[i][j] = v
			best = min(best, v)
		}
		if int(best) > maxDist {
			// No later row can be near: a swap that reaches back over this row costs no less than deleting the letters
			// between, which is a cell of this row.
			return far
		}
		if hi < len(b) {
			d[i][hi+1] = uint8(far)
		}
	}
	return min(int(d[len(a)][len(b)]), far)
}

// swapped returns the cost of ending both words in two swapped letters, with edits between them.
func swapped(a, b []byte, i, j, maxDist int, d *[65][65]uint8) uint8 {
	for k := i - 1; k >= 1 && i-k <= maxDist; k-- {
		if a[k-1] != b[j-1] {
			continue
		}
		for l := j - 1; l >= 1 && j-l <= maxDist; l-- {
			if b[l-1] != a[i-1] || k-l > maxDist || l-k > maxDist {
				continue
			}
			return d[k-1][l-1] + uint8(i-k-1) + 1 + uint8(j-l-1)
		}
		break
	}
	return 255
}
