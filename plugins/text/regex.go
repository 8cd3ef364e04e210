package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// FindParams are the text to search and the pattern.
type FindParams struct {
	// Text to search.
	Text string `json:"text"`
	// RE2 pattern, e.g. "err(or)?".
	Pattern string `json:"pattern" minLength:"1" maxLength:"1000"`
	// Treat a and A alike.
	IgnoreCase bool `json:"ignore_case,omitempty"`
	// Matches to return at most, e.g. 10.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000" default:"100"`
}

// FindResult lists matches.
type FindResult struct {
	// The matches in order, at most limit.
	Matches []Match `json:"matches"`
	// Matches in the whole text.
	Total int `json:"total"`
}

// Match is one match of the pattern.
type Match struct {
	// What matched.
	Text string `json:"text"`
	// Line, from 1.
	Line int `json:"line"`
	// Column in characters, from 1.
	Column int `json:"column"`
	// What the groups of the pattern matched.
	Groups []string `json:"groups,omitempty"`
}

// Find lists the matches of a pattern.
func Find(c *sdk.Call, p FindParams) (FindResult, error) {
	re, err := compile(p.Pattern, p.IgnoreCase, false)
	if err != nil {
		return FindResult{}, err
	}
	limit := p.Limit
	if limit == 0 {
		limit = 100
	}
	var r FindResult
	at := cursor{text: p.Text, line: 1, column: 1}
	matches, all := matchesOf(re, p.Text)
	for _, m := range matches {
		r.Total++
		if r.Total > limit {
			continue
		}
		at.move(m[0])
		match := Match{Text: p.Text[m[0]:m[1]], Line: at.line, Column: at.column}
		for g := 2; g < len(m); g += 2 {
			text := ""
			if m[g] >= 0 {
				text = p.Text[m[g]:m[g+1]]
			}
			match.Groups = append(match.Groups, text)
		}
		r.Matches = append(r.Matches, match)
	}
	if !all {
		c.Warn("there are more than %d matches, where counting stopped; narrow the pattern", r.Total)
	} else if r.Total > limit {
		c.Warn("%d matches, the first %d are shown; raise limit (at most 1000) or narrow the pattern", r.Total, limit)
	}
	return r, nil
}

// maxOffsets limits the memory of matches: each takes two offsets, plus two per group.
const maxOffsets = 2_000_000

// matchesOf returns the matches like FindAllStringSubmatchIndex, and whether they are complete.
func matchesOf(re *regexp.Regexp, text string) (matches [][]int, all bool) {
	limit := maxOffsets / (2 + 2*re.NumSubexp())
	matches = re.FindAllStringSubmatchIndex(text, limit+1)
	if len(matches) > limit {
		return matches[:limit], false
	}
	return matches, true
}

// cursor tracks the line and column of an offset that only grows.
type cursor struct {
	text         string
	offset       int
	line, column int
}

func (c *cursor) move(to int) {
	passed := c.text[c.offset:to]
	if n := strings.Count(passed, "\n"); n > 0 {
		c.line += n
		c.column = 1
		passed = passed[strings.LastIndexByte(passed, '\n')+1:]
	}
	c.column += utf8.RuneCountInString(passed)
	c.offset = to
}

// ReplaceParams are the text to edit, the pattern and its replacement.
type ReplaceParams struct {
	// Text to edit.
	Text string `json:"text"`
	// RE2, e.g. "a+".
	Pattern string `json:"pattern" minLength:"1" maxLength:"1000" aliases:"find,search,old,from,old_text,old_string"`
	// New text; $1 is a group, $$ a $.
	Replacement string `json:"replacement" aliases:"replace,replace_with,with,new,to,new_text,new_string"`
	// No regex, plain text.
	Literal bool `json:"literal,omitempty"`
	// Treat a and A alike.
	IgnoreCase bool `json:"ignore_case,omitempty"`
}

// ReplaceResult is the edited text.
type ReplaceResult struct {
	// The text after the edit.
	Text string `json:"text"`
	// Number of replacements.
	Count int `json:"count"`
}

// maxReplaced is the limit of an edited text in bytes.
const maxReplaced = 4 << 20

// Replace replaces every match of a pattern.
func Replace(_ *sdk.Call, p ReplaceParams) (ReplaceResult, error) {
	re, err := compile(p.Pattern, p.IgnoreCase, p.Literal)
	if err != nil {
		return ReplaceResult{}, err
	}
	matches, all := matchesOf(re, p.Text)
	if !all {
		return ReplaceResult{}, sdk.Exit("too_large", fmt.Sprintf("the pattern matches more than %d times", len(matches)),
			nil)
	}
	if len(matches) == 0 {
		return ReplaceResult{}, sdk.Exit("no_match", "the pattern does not match the text", nil)
	}
	var out []byte
	end := 0
	for _, m := range matches {
		out = append(out, p.Text[end:m[0]]...)
		if p.Literal {
			out = append(out, p.Replacement...)
		} else {
			out = re.ExpandString(out, p.Replacement, p.Text, m)
		}
		end = m[1]
		if len(out) > maxReplaced {
			return ReplaceResult{}, sdk.Exit("too_large", "the text would exceed 4 MiB", nil)
		}
	}
	return ReplaceResult{Text: string(append(out, p.Text[end:]...)), Count: len(matches)}, nil
}

func compile(pattern string, ignoreCase, literal bool) (*regexp.Regexp, error) {
	flags := "(?m)"
	if ignoreCase {
		flags = "(?mi)"
	}
	source := pattern
	if literal {
		source = regexp.QuoteMeta(pattern)
	}
	re, err := regexp.Compile(flags + source)
	if err == nil {
		return re, nil
	}
	if _, own := regexp.Compile(source); own != nil {
		err = own // without the flags, which the caller has not written
	}
	suggestion := `close each group and class, or escape special characters with \, e.g. "\\(" for a parenthesis`
	if strings.Contains(pattern, "(?=") || strings.Contains(pattern, "(?!") || strings.Contains(pattern, "(?<") {
		suggestion = "RE2 has no look-ahead or look-behind: match the surrounding text in groups"
	}
	message := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	return nil, sdk.Invalid("/pattern", "an RE2 pattern", message, suggestion)
}
