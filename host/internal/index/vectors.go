package index

import (
	_ "embed"
	"encoding/binary"
	"math"
	"sort"
	"strings"
)

// vectorData contains the vectors of common English words and technical terms: the vectors of words with similar
// meanings have similar directions. See vectors/README.md for their source, how they are made and their licence.
//
// Layout, little-endian: u32 number of words; u32 offset per word, and one more for the end, relative to the end of
// these numbers; the words, sorted; vectorSize signed bytes per word. The more specific a word, the longer its vector.
// Segments contain sums of these vectors, so a change of the file requires a new version of segments.
//
//go:embed vectors.bin
var vectorData string

const (
	vectorSize = 64
	// vectorLength is the length that the sum of a text's vectors is scaled to. Its components are mostly below an eighth
	// of that and are rounded to the steps of a nibble.
	vectorLength = 256
	roundingStep = 11
)

// meaning is the meaning of a text: the weighted sum of its words' vectors. The zero value has no meaning.
type meaning [vectorSize]float64

// add adds the words of a text. It reports whether any of them has a vector.
func (m *meaning) add(text string, weight float64) (some bool) {
	const maxCount = 400 // words of a text
	for _, c := range chunks(text, maxCount) {
		for _, word := range c.parts {
			if stopWord(word) {
				continue
			}
			if v := vectorOf(word); v != "" {
				some = true
				for i := range m {
					m[i] += weight * float64(int8(v[i]))
				}
			}
		}
	}
	return some
}

// direction returns the sum scaled to vectorLength; ok is false if the sum is zero.
func (m *meaning) direction() (v [vectorSize]int16, ok bool) {
	length := 0.0
	for _, x := range m {
		length += x * x
	}
	if length == 0 {
		return v, false
	}
	for i, x := range m {
		v[i] = int16(math.Round(x * vectorLength / math.Sqrt(length)))
	}
	return v, true
}

// packed returns the direction with one nibble per dimension, even dimensions in the low nibbles. An index has one per
// tool.
func (m *meaning) packed() (out [vectorSize / 2]byte) {
	v, _ := m.direction()
	nibble := func(x int16) byte { return byte(int8(max(-7, min(7, math.Round(float64(x)/roundingStep))))) & 15 }
	for i := range out {
		out[i] = nibble(v[2*i]) | nibble(v[2*i+1])<<4
	}
	return out
}

// cosineTable compares one direction with many packed ones: for each of their bytes it has the contribution of every
// value.
type cosineTable [vectorSize / 2][256]int16

func (l *cosineTable) init(v [vectorSize]int16) {
	for i := range l {
		low, high := int(v[2*i]), int(v[2*i+1])
		for b := range l[i] {
			l[i][b] = int16(low*int(int8(b<<4)>>4) + high*int(int8(b)>>4))
		}
	}
}

// cosine returns the approximate cosine with a packed direction: 1 for the same meaning, 0 for unrelated ones.
func (l *cosineTable) cosine(packed []byte) float64 {
	const word = 8 // bytes read at once
	sum := 0
	for i := 0; i < len(l); i += word {
		b := binary.LittleEndian.Uint64(packed[i:])
		t := (*[word][256]int16)(l[i : i+word])
		sum += int(t[0][b&255]) + int(t[1][b>>8&255]) + int(t[2][b>>16&255]) + int(t[3][b>>24&255]) +
			int(t[4][b>>32&255]) + int(t[5][b>>40&255]) + int(t[6][b>>48&255]) + int(t[7][b>>56])
	}
	return float64(sum) * roundingStep / (vectorLength * vectorLength)
}

// vectorOf returns the vector of a word, or of the word without a common ending; empty if there is none.
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
	at, found := sort.Find(n, func(i int) int {
		return strings.Compare(word, words[vectorNumber(1+i):vectorNumber(2+i)])
	})
	if !found {
		return ""
	}
	return words[vectorNumber(1+n)+vectorSize*at:][:vectorSize]
}

// vectorNumber returns u32 number i of the file.
func vectorNumber(i int) int {
	b := vectorData[4*i:][:4]
	return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
}
