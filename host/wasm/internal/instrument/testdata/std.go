// Command std runs packages of the standard library over a text of its own.
package main

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"hash/crc32"
	"io"
	"regexp"
	"slices"
	"strings"
)

func main() {}

var word = regexp.MustCompile(`(\w+?)([0-9]+)(?:-[a-f]*)?`)

// std makes n records, and sorts, encodes, compresses, expands, decodes and searches them, each n times.
//
//go:wasmexport std
func std(n uint32) uint32 {
	type record struct {
		Name  string            `json:"name"`
		Score float64           `json:"score"`
		Tags  []string          `json:"tags"`
		More  map[string]uint32 `json:"more"`
	}
	sum, x := uint32(0), uint32(1)
	for range n {
		var records []record
		for range n {
			x = x*1664525 + 1013904223
			name := "item" + strings.Repeat("ab", int(x>>28)) + string(rune('0'+x>>8%10)) + "-cafe"
			records = append(records, record{name, float64(x) / 3, []string{name[:3], name[3:]}, map[string]uint32{name: x}})
		}
		slices.SortFunc(records, func(a, b record) int { return strings.Compare(a.Name, b.Name) })
		text, err := json.Marshal(records)
		if err != nil {
			panic(err)
		}
		var packed bytes.Buffer
		w, _ := flate.NewWriter(&packed, 6)
		if _, err := w.Write(text); err != nil || w.Close() != nil {
			panic("compress")
		}
		back, err := io.ReadAll(flate.NewReader(&packed))
		if err != nil {
			panic(err)
		}
		var decoded []record
		if err := json.Unmarshal(back, &decoded); err != nil || len(decoded) != len(records) {
			panic("decode")
		}
		sum = sum*31 + crc32.ChecksumIEEE(back) + uint32(len(word.FindAllIndex(back, -1)))
	}
	return sum
}
