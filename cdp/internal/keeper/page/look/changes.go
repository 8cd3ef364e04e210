package look

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/page"
	"github.com/parley-tools/parley/internal/lazy"
)

// keep sets the text of a snapshot to the first lines that fit into size bytes.
func (s *snapshotText) keep(lines []string, size int) {
	end := slices.IndexFunc(lines, func(line string) bool {
		size -= len(line) + 1
		return size < 0
	})
	if end < 0 {
		end = len(lines)
	}
	s.Text, s.Left["cut"] = strings.Join(lines[:end], "\n"), len(lines)-end
}

// changes returns the lines that are gone, with "-"; that are new, with "+"; that have moved, with ">"; and the line
// that is only newly focused, with "*". It reports as few lines as moved as possible.
func changes(before, now []string) (shown []string) {
	before, now = append(telling(before, now), ""), append(telling(now, before), "") // the empty last line stays in place
	places := map[string][]int{}
	for i, line := range before {
		line = unfocused(line)
		places[line] = append(places[line], i)
	}
	from, stayed := make([]int, len(now)), map[int]bool{} // from is the former index of a line, -1 for a new one
	for j, line := range now {
		from[j], line = -1, unfocused(line)
		if at := places[line]; len(at) > 0 {
			from[j], places[line] = at[0], at[1:]
			stayed[at[0]] = true
		}
	}
	i, j := 0, 0
	for _, fixed := range longestRun(from) {
		var minus, plus, moved []string
		for ; i < from[fixed]; i++ {
			if !stayed[i] {
				minus = append(minus, before[i])
			}
		}
		for ; j < fixed; j++ {
			if from[j] < 0 {
				plus = append(plus, now[j])
			} else {
				moved = append(moved, "> "+now[j])
			}
		}
		shown, j = append(append(shown, replaced(minus, plus)...), moved...), fixed+1
		if line := now[fixed]; line != before[from[fixed]] && line != unfocused(line) {
			shown = append(shown, "* "+line)
		}
	}
	return shown
}

// unfocused returns a line without the state "focused".
func unfocused(line string) string {
	const state = "focused"
	bare := quoted().ReplaceAllStringFunc(line, func(text string) string { return strings.Repeat("-", len(text)) })
	states := strings.LastIndex(bare, "[")
	at := strings.LastIndex(bare, state)
	if states < 0 || at < states {
		return line
	}
	before, after := line[:at], line[at+len(state):]
	switch first := strings.HasSuffix(before, "["); {
	case first && strings.HasPrefix(after, "]"):
		return strings.TrimSuffix(before, " [") + after[1:]
	case first:
		return before + strings.TrimPrefix(after, " ")
	}
	return strings.TrimSuffix(before, " ") + after
}

// telling returns the lines of a snapshot without their indentation. It leaves out a line with only a role if other
// has the same line, because such lines cannot be told apart.
func telling(lines, other []string) (out []string) {
	for _, line := range lines {
		same := func(of string) bool { return strings.TrimLeft(of, " ") == line }
		line = strings.TrimLeft(line, " ")
		if line != "" && (strings.ContainsAny(line, ` "`) || !slices.ContainsFunc(other, same)) {
			out = append(out, line)
		}
	}
	return out
}

// longestRun returns the indices of the longest increasing subsequence of some numbers, ignoring those below 0.
func longestRun(numbers []int) (run []int) {
	length, before := make([]int, len(numbers)), make([]int, len(numbers)) // for the run that ends at each index
	last := -1
	for i, n := range numbers {
		before[i] = -1
		for j := range i {
			if numbers[j] >= 0 && numbers[j] < n && length[j] > length[i] {
				length[i], before[i] = length[j], j
			}
		}
		length[i]++
		if n >= 0 && (last < 0 || length[i] > length[last]) {
			last = i
		}
	}
	for ; last >= 0; last = before[last] {
		run = append(run, last)
	}
	slices.Reverse(run)
	return run
}

// replaced returns the lines that are gone and the lines that replace them. If each gone line pairs with a new one,
// both are shortened to the part of their text that differs.
func replaced(minus, plus []string) (out []string) {
	paired := len(minus) == len(plus)
	for k, line := range minus {
		other := ""
		if paired {
			other, plus[k] = plus[k], differing(plus[k], line, len(plus[k]))
		}
		out = append(out, "- "+differing(line, other, maxGone))
	}
	for _, line := range plus {
		out = append(out, "+ "+line)
	}
	return out
}

// around is how many characters of a long text are kept around the part that differs. maxGone limits that part in a
// line that is gone.
const around, maxGone = 12, 40

var quoted = lazy.Pattern(`"(?:[^"\\]|\\.)*"`)

// differing shortens the first text of a line to the part that differs from the first text of another line. That part
// has at most most characters.
func differing(line, other string, most int) string {
	text, than := firstText(line), firstText(other)
	start, end := 0, len(text)
	for start < min(end, len(than)) && text[start] == than[start] {
		start++
	}
	for last := len(than) - 1; end > start && last >= start && text[end-1] == than[last]; last-- {
		end--
	}
	start, end = max(start-around, 0), min(end, start+most)+around
	if end-start >= len(text)-2*around {
		return line
	}
	short := strings.Repeat("…", min(start, 1)) + string(text[start:min(end, len(text))])
	if end < len(text) {
		short += "…"
	}
	return strings.Replace(line, quoted().FindString(line), page.Quote(short), 1)
}

// firstText returns the first quoted text in a line, "" if there is none.
func firstText(line string) []rune {
	var text string
	_ = json.Unmarshal([]byte(quoted().FindString(line)), &text)
	return []rune(text)
}
