// Command vectors writes ../vectors.bin from words.txt and the output of embed.mjs; see README.md.
package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"sort"
	"strings"
)

const (
	modelDims = 512 // dimensions of the model
	keptDims  = 64  // dimensions of the output
	scale     = 256 // length of the vector of a rare word, in steps of a signed byte
	rounds    = 60  // rounds of power iteration
	halfRank  = 300 // the word at this position of words.txt, which is sorted by frequency, counts half
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: go run ./host/internal/index/vectors WORDS.txt EMBEDDED OUT.bin")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func run(wordFile, embedded, out string) error {
	list, err := os.ReadFile(wordFile)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(embedded)
	if err != nil {
		return err
	}
	words := strings.Fields(string(list))
	if len(raw) != 4*modelDims*len(words) {
		return fmt.Errorf("%s has %d bytes; %d words need %d", embedded, len(raw), len(words), 4*modelDims*len(words))
	}
	vectors := make([][]float64, len(words))
	for i := range vectors {
		vectors[i] = make([]float64, modelDims)
		for j := range modelDims {
			vectors[i][j] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*(modelDims*i+j):])))
		}
	}
	return os.WriteFile(out, pack(words, reduce(vectors)), 0o644)
}

// reduce centres the vectors and rotates them to their principal axes. It drops the first axis, in which all words are
// similar, and keeps the next ones. Common words say less and get shorter vectors.
func reduce(vectors [][]float64) [][]float64 {
	mean := make([]float64, modelDims)
	for _, v := range vectors {
		for i, x := range v {
			mean[i] += x / float64(len(vectors))
		}
	}
	for _, v := range vectors {
		for i := range v {
			v[i] -= mean[i]
		}
		setLength(v, 1)
	}
	axes := principal(vectors, 1+keptDims)[1:]
	out := make([][]float64, len(vectors))
	for rank, v := range vectors {
		out[rank] = make([]float64, keptDims)
		for i, axis := range axes {
			out[rank][i] = dot(v, axis)
		}
		setLength(out[rank], float64(rank)/float64(rank+halfRank))
	}
	return out
}

// principal returns the first n principal axes, found by power iteration on n axes.
func principal(vectors [][]float64, n int) [][]float64 {
	covariance := make([][]float64, modelDims)
	for i := range covariance {
		covariance[i] = make([]float64, modelDims)
	}
	for _, v := range vectors {
		for i, x := range v {
			row := covariance[i]
			for j, y := range v {
				row[j] += x * y
			}
		}
	}
	axes := make([][]float64, n)
	for a := range axes {
		axes[a] = make([]float64, modelDims)
		axes[a][a] = 1
	}
	for range rounds {
		for a, axis := range axes {
			turned := make([]float64, modelDims)
			for i := range turned {
				turned[i] = dot(covariance[i], axis)
			}
			for _, before := range axes[:a] {
				along := dot(turned, before)
				for i := range turned {
					turned[i] -= along * before[i]
				}
			}
			setLength(turned, 1)
			axes[a] = turned
		}
	}
	return axes
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// setLength scales v to a length.
func setLength(v []float64, length float64) {
	if now := math.Sqrt(dot(v, v)); now > 0 {
		for i := range v {
			v[i] *= length / now
		}
	}
}

// pack writes the layout that ../vectors.go describes.
func pack(words []string, vectors [][]float64) []byte {
	order := make([]int, len(words))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool { return words[order[i]] < words[order[j]] })
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(words)))
	at := 0
	for _, i := range order {
		out = binary.LittleEndian.AppendUint32(out, uint32(at))
		at += len(words[i])
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(at))
	for _, i := range order {
		out = append(out, words[i]...)
	}
	for _, i := range order {
		for _, x := range vectors[i] {
			out = append(out, byte(int8(max(-127, min(127, math.Round(x*scale))))))
		}
	}
	return out
}
