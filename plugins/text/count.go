package main

import (
	"math"
	"strings"
	"unicode"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// CountParams is the text to measure.
type CountParams struct {
	// Text to measure, e.g. "one two".
	Text string `json:"text"`
}

// CountResult is the size of a text in several units.
type CountResult struct {
	// Bytes in UTF-8.
	Bytes int `json:"bytes"`
	// Unicode code points.
	Characters int `json:"characters"`
	// Words between white space.
	Words int `json:"words"`
	// Lines, with a last one that has no newline.
	Lines int `json:"lines"`
	// Estimate of model tokens: bytes / 4.5.
	Tokens int `json:"tokens"`
}

// Count measures a text.
func Count(_ *sdk.Call, p CountParams) (CountResult, error) {
	r := CountResult{
		Bytes:  len(p.Text),
		Lines:  countLines(p.Text),
		Tokens: int(math.Ceil(float64(len(p.Text)) / 4.5)),
	}
	between := true
	for _, c := range p.Text {
		r.Characters++
		if space := unicode.IsSpace(c); space != between {
			between = space
			if !space {
				r.Words++
			}
		}
	}
	return r, nil
}

// countLines counts lines, including a last line without a newline.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
