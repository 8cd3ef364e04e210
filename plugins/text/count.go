package main

import (
	"math"
	"strings"
	"unicode/utf8"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// CountParams is the text that is measured.
type CountParams struct {
	// Text to measure, e.g. "one two".
	Text string `json:"text"`
}

// CountResult measures a text.
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
	return CountResult{
		Bytes:      len(p.Text),
		Characters: utf8.RuneCountInString(p.Text),
		Words:      len(strings.Fields(p.Text)),
		Lines:      len(lines(p.Text)),
		Tokens:     int(math.Ceil(float64(len(p.Text)) / 4.5)),
	}, nil
}
