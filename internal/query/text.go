package query

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// pattern is a regular expression as gojq compiles it.
type pattern struct {
	*regexp.Regexp
	// next matches the character before an offset and then the expression. It finds the empty matches right after
	// another match, which gojq reports and package regexp leaves out.
	next *regexp.Regexp
}

var matches = plainly("_match($re; $flags; false)", "$re", "$flags")

// find returns the matches of package regexp, plus the empty ones that follow another match. ok is false for calls
// that fail; their error must come from gojq's own function.
func (c *compiler) find(v, re, flags any) (text string, p *pattern, found [][]int, ok bool) {
	text, isText := v.(string)
	source, isSource := re.(string)
	options, _ := flags.(string)
	if _, isOptions := flags.(string); !isText || !isSource || flags != nil && !isOptions ||
		strings.Trim(options, "gim") != "" {
		return "", nil, nil, false
	}
	if p = c.compileRegexp(source, options); p == nil {
		return "", nil, nil, false
	}
	if !strings.Contains(options, "g") {
		return text, p, p.FindAllStringSubmatchIndex(text, 1), true
	}
	all := p.FindAllStringSubmatchIndex(text, -1)
	for i, m := range all {
		found = append(found, m)
		if m[0] < m[1] && (i+1 == len(all) || all[i+1][0] != m[1]) && p.next != nil {
			if empty := p.emptyAt(text, m[1]); empty != nil {
				found = append(found, empty)
			}
		}
	}
	return text, p, found, true
}

func (c *compiler) compileRegexp(source, options string) *pattern {
	key := [2]string{source, options}
	if p, ok := c.patterns.Load(key); ok {
		return p.(*pattern)
	}
	if strings.Contains(options, "i") {
		source = "(?i)" + source
	}
	if strings.Contains(options, "m") {
		source = "(?s)" + source
	}
	var p *pattern
	if re, err := regexp.Compile(source); err == nil {
		p = &pattern{Regexp: re}
		p.next, _ = regexp.Compile(`\A(?s:.)(?:` + source + `)`)
	}
	c.patterns.Store(key, p)
	return p
}

// emptyAt returns the empty match at an offset, nil if the pattern does not match there.
func (p *pattern) emptyAt(text string, offset int) []int {
	_, width := utf8.DecodeLastRuneInString(text[:offset])
	m := p.next.FindStringSubmatchIndex(text[offset-width:])
	if m == nil || m[1] != width {
		return nil
	}
	m[0] = width
	for i := range m {
		if m[i] >= 0 {
			m[i] += offset - width
		}
	}
	return m
}

// match is fnMatch, without the brackets of match: the objects of all matches.
func (c *compiler) match(v, re, flags any) any {
	text, p, found, ok := c.find(v, re, flags)
	if !ok {
		return matches(v, re, flags)
	}
	objects := make([]any, len(found))
	names := p.SubexpNames()
	offset, characters := 0, 0 // both at the beginning of the last match
	for i, m := range found {
		characters += utf8.RuneCountInString(text[offset:m[0]])
		offset = m[0]
		part := func(from, to int) map[string]any {
			if from < 0 {
				return map[string]any{"offset": -1, "length": 0, "string": nil}
			}
			at := characters + utf8.RuneCountInString(text[offset:max(offset, from)])
			if from < offset { // no group begins before its match
				at = utf8.RuneCountInString(text[:from])
			}
			return map[string]any{"offset": at, "length": utf8.RuneCountInString(text[from:to]), "string": text[from:to]}
		}
		captures := make([]any, len(m)/2-1)
		for j := range captures {
			capture := part(m[2*j+2], m[2*j+3])
			if capture["name"] = nil; names[j+1] != "" {
				capture["name"] = names[j+1]
			}
			captures[j] = capture
		}
		object := part(m[0], m[1])
		object["captures"] = captures
		objects[i] = object
	}
	return objects
}

// cut is fnCut.
func (c *compiler) cut(v, re, flags any) any {
	text, p, found, ok := c.find(v, re, flags)
	if !ok {
		return matches(v, re, flags)
	}
	parts := make([]any, len(found))
	names, end := p.SubexpNames(), 0
	for i, m := range found {
		captures := map[string]any{}
		for j, name := range names {
			switch {
			case name == "":
			case m[2*j] < 0:
				captures[name] = nil
			default:
				captures[name] = text[m[2*j]:m[2*j+1]]
			}
		}
		parts[i] = []any{text[end:m[0]], captures}
		end = m[1]
	}
	return []any{parts, text[end:], text}
}

// join is fnJoin: the nth text takes the nth replacement of each match that has as many, and the parts between the
// matches. Without any replacement it is the text itself.
func join(parts, cut []any) gojq.Iter {
	var texts []any
	for n := 0; ; n++ {
		var b strings.Builder
		more := false
		for _, p := range parts {
			if alternatives := p.([]any); n < len(alternatives) {
				b.WriteString(alternatives[n].(string))
				more = true
			}
		}
		if !more {
			break
		}
		b.WriteString(cut[1].(string))
		texts = append(texts, b.String())
	}
	if texts == nil {
		texts = cut[2:]
	}
	return gojq.NewIter(texts...)
}
