package index

import (
	_ "embed"
	"math"
	"strings"
)

// vectorData says of common English words and words of the trade what they are about: of two words that mean nearly the same
// the vectors point nearly alike. See vectors/README.md for where they come from, how they are made and on what terms.
//
// Layout, little-endian: u32 number of words; u32 per word, and one more for the end, where it begins behind these; the
// words, sorted; vectorSize signed bytes per word. A vector is the longer the more its word says. Whoever changes the file raises
// the version of segments, which hold sums of these vectors.
//
//go:embed vectors.bin
var vectorData string

const (
	vectorSize = 64
	// vectorLength is the length that a document's vector is brought to before its parts are cut to bytes.
	vectorLength = 256
)

// meaning is what a text is about: the sum of its words' vectors, each times a weight. The zero value is about nothing.
type meaning struct {
	sum [vectorSize]float64
}

// add adds the words of a text; some says whether any of them is known.
func (m *meaning) add(text string, weight float64) (some bool) {
	const most = 400 // words of a text
	for _, c := range chunks(text, most) {
		for _, word := range c.parts {
			if stopWord(word) {
				continue
			}
			if v := vectorOf(word); v != "" {
				some = true
				for i := range m.sum {
					m.sum[i] += weight * float64(int8(v[i]))
				}
			}
		}
	}
	return some
}

// direction is the sum at the usual length, in bytes; ok says that there is any.
func (m *meaning) direction() (v [vectorSize]int8, ok bool) {
	length := 0.0
	for _, x := range m.sum {
		length += x * x
	}
	if length == 0 {
		return v, false
	}
	for i, x := range m.sum {
		v[i] = int8(max(-127, min(127, math.Round(x*vectorLength/math.Sqrt(length)))))
	}
	return v, true
}

// alike is the cosine of a direction and of one in place: 1 for the same meaning, 0 for none in common.
func alike(a *[vectorSize]int8, b []byte) float64 {
	b = b[:vectorSize]
	sum := int32(0)
	for i, x := range a {
		sum += int32(x) * int32(int8(b[i]))
	}
	return float64(sum) / (vectorLength * vectorLength)
}

// vectorOf is the vector of a word, or of the word without a common ending; empty when there is none.
func vectorOf(word string) string {
	v := vectorOfForm(word)
	for _, ending := range [...]string{"s", "es", "ed", "d", "ing"} {
		if base, ok := strings.CutSuffix(word, ending); v == "" && ok && len(base) > 2 {
			v = vectorOfForm(base)
		}
	}
	return v
}

func vectorOfForm(word string) string {
	n := vectorNumber(0)
	words := vectorData[4*(n+2):]
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi) / 2
		switch w := words[vectorNumber(1+mid):vectorNumber(2+mid)]; {
		case w == word:
			return words[vectorNumber(1+n)+vectorSize*mid:][:vectorSize]
		case w < word:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return ""
}

// vectorNumber is u32 number i of the file.
func vectorNumber(i int) int {
	b := vectorData[4*i:][:4]
	return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
}
