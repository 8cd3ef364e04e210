package main

import (
	"fmt"
	"slices"
	"strings"

	sdk "github.com/parley-tools/parley/sdk/go"
)

// DiffParams are two versions of a text.
type DiffParams struct {
	// The old text, e.g. "a\nb\n".
	Before string `json:"before" aliases:"old,original,left,text1,text_1"`
	// The new text, e.g. "a\nc\n".
	After string `json:"after" aliases:"new,changed,right,text2,text_2"`
	// Unchanged lines around each change, e.g. 1.
	Context *int `json:"context,omitempty" minimum:"0" maximum:"100" default:"3"`
}

// DiffResult is a unified diff and its size.
type DiffResult struct {
	// Unified diff; empty if the texts are equal.
	Diff string `json:"diff"`
	// Lines added.
	Added int `json:"added"`
	// Lines removed.
	Removed int `json:"removed"`
}

// maxLines limits the lines of each text, and so the memory of a diff.
const maxLines = 200_000

// Diff compares two texts line by line.
func Diff(c *sdk.Call, p DiffParams) (DiffResult, error) {
	context := 3
	if p.Context != nil {
		context = *p.Context
	}
	if n := max(countLines(p.Before), countLines(p.After)); n > maxLines {
		return DiffResult{}, sdk.Exit("too_large", fmt.Sprintf("a text has %d lines; the limit is %d", n, maxLines), nil)
	}
	a, b := lines(p.Before), lines(p.After)
	edits, minimal := compare(a, b)
	if !minimal {
		c.Warn("the texts differ in more than %d lines: the diff is correct but not the shortest", maxEdits)
	}
	return DiffResult{unified(edits, context), lengthOf(edits, '+'), lengthOf(edits, '-')}, nil
}

// edit is one line of a diff: ' ' kept, '-' removed, '+' added.
type edit struct {
	op   byte
	line string
}

// lengthOf counts the edits of a kind.
func lengthOf(edits []edit, op byte) (n int) {
	for _, e := range edits {
		if e.op == op {
			n++
		}
	}
	return n
}

// lines cuts text after each newline.
func lines(text string) []string {
	return strings.SplitAfter(text, "\n")[:countLines(text)]
}

// maxEdits limits the memory of compare, which grows with its square.
const maxEdits = 1500

// compare returns the edits that turn a into b, after Myers, "An O(ND)
// difference algorithm". Beyond maxEdits it gives up on the shortest diff: it
// removes and adds everything between the common head and tail.
func compare(a, b []string) (edits []edit, minimal bool) {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	middle, minimal := shortest(a[head:len(a)-tail], b[head:len(b)-tail])
	return slices.Concat(all(' ', a[:head]), middle, all(' ', a[len(a)-tail:])), minimal
}

// all makes the same edit of each line.
func all(op byte, lines []string) (edits []edit) {
	for _, line := range lines {
		edits = append(edits, edit{op, line})
	}
	return edits
}

func shortest(a, b []string) ([]edit, bool) {
	// furthest[d][k+d] is how far into a the best path of d edits reaches on diagonal k.
	var furthest [][]int32
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		row := make([]int32, 2*d+1)
		furthest = append(furthest, row)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x, _ = step(furthest[d-1], d, k)
			}
			y := x - k
			for x < len(a) && y >= 0 && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			row[k+d] = int32(x)
			if x >= len(a) && y >= len(b) {
				return backtrack(a, b, furthest), true
			}
		}
	}
	return append(all('-', a), all('+', b)...), false
}

// step returns how far into a edit d reaches on diagonal k, given the row of edit
// d-1, and whether that edit adds a line of b or removes one of a.
func step(previous []int32, d, k int) (x int, adds bool) {
	at := func(k int) int { return int(previous[k+d-1]) }
	if k == -d || k != d && at(k-1) < at(k+1) {
		return at(k + 1), true
	}
	return at(k-1) + 1, false
}

func backtrack(a, b []string, furthest [][]int32) []edit {
	var reversed []edit
	x, y := len(a), len(b)
	for d := len(furthest) - 1; d >= 0; d-- {
		k := x - y
		start, adds := 0, false
		if d > 0 {
			start, adds = step(furthest[d-1], d, k)
		}
		for x > start {
			x, y = x-1, y-1
			reversed = append(reversed, edit{' ', a[x]})
		}
		if d == 0 {
			break
		}
		if adds {
			y--
			reversed = append(reversed, edit{'+', b[y]})
		} else {
			x--
			reversed = append(reversed, edit{'-', a[x]})
		}
	}
	slices.Reverse(reversed)
	return reversed
}

// unified writes edits as hunks with context lines around each change.
func unified(edits []edit, context int) string {
	var out strings.Builder
	oldLine, newLine := 1, 1 // of edits[done]
	done := 0
	for {
		first := done
		for first < len(edits) && edits[first].op == ' ' {
			first++
		}
		if first == len(edits) {
			return out.String()
		}
		start := max(done, first-context)
		end, unchanged := first, 0 // the hunk ends where 2*context lines are unchanged
		for i := first; i < len(edits) && unchanged <= 2*context; i++ {
			if edits[i].op == ' ' {
				unchanged++
			} else {
				end, unchanged = i+1, 0
			}
		}
		end = min(end+context, len(edits))
		oldLine, newLine = oldLine+start-done, newLine+start-done
		oldLen, newLen := end-start-lengthOf(edits[start:end], '+'), end-start-lengthOf(edits[start:end], '-')
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(oldLine, oldLen), span(newLine, newLen))
		for _, e := range edits[start:end] {
			out.WriteByte(e.op)
			out.WriteString(e.line)
			if !strings.HasSuffix(e.line, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
		oldLine, newLine = oldLine+oldLen, newLine+newLen
		done = end
	}
}

// span formats a range of lines as diff does: an empty range gives the line before it.
func span(line, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", line-1)
	case 1:
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, n)
}
