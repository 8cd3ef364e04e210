package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// recorded is a run of a task: a line of the file of recorded runs.
type recorded struct {
	Task  string `json:"task"`
	Mode  string `json:"mode"`
	Model string `json:"model"`
	End   string `json:"end"` // as in [result]
	Turns []turn `json:"turns"`
}

// turn is what the model wrote, and how each call that it made ended.
type turn struct {
	Wrote    string   `json:"wrote"`
	Outcomes []string `json:"outcomes,omitempty"`
}

// key identifies a run.
type key struct{ task, mode string }

func readRuns(path string) (map[key]recorded, error) {
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	runs := map[key]recorded{}
	for line := range bytes.Lines(raw) {
		var r recorded
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		runs[key{r.Task, r.Mode}] = r
	}
	return runs, nil
}

func writeRuns(path string, runs map[key]recorded) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, k := range slices.SortedFunc(maps.Keys(runs), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.mode, b.mode), cmp.Compare(a.task, b.task))
	}) {
		if err := encoder.Encode(runs[k]); err != nil {
			return err
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// names replaces what differs from run to run by constant names, so that a recorded call that uses an ID works in the
// next run, too.
type names struct {
	address     string
	shown, real map[string]string
	documents   int // whose references were seen
}

// shownAddress is what the model reads for the address of the site.
const shownAddress = "127.0.0.1:8000"

func newNames(address string) *names {
	return &names{address: address, shown: map[string]string{}, real: map[string]string{}}
}

// volatile matches IDs of calls, pages and requests.
var volatile = regexp.MustCompile(`\bc[0-9a-f]{16}\b|\b[0-9A-F]{32}\b`)

// reference matches the reference of an element in a snapshot: three letters of the document, and a number.
// shownReference matches the constant name of one.
var (
	reference      = regexp.MustCompile(`(\\?" )([a-z]{3})(\d+)\b`)
	shownReference = regexp.MustCompile(`\b(e[a-z])(\d+)\b`)
)

// documented are the letters of the references in the documentation of page.
const documented = "kqz"

func (n *names) hide(text string) string {
	text = strings.ReplaceAll(text, n.address, shownAddress)
	text = reference.ReplaceAllStringFunc(text, func(ref string) string {
		parts := reference.FindStringSubmatch(ref)
		if parts[2] == documented {
			return ref
		}
		name, ok := n.shown[parts[2]]
		if !ok {
			name = "e" + string(rune('a'+n.documents%26))
			n.documents++
			n.shown[parts[2]], n.real[name] = name, parts[2]
		}
		return parts[1] + name + parts[3]
	})
	return volatile.ReplaceAllStringFunc(text, func(id string) string {
		if name, ok := n.shown[id]; ok {
			return name
		}
		form := "%032X"
		if id[0] == 'c' {
			form = "c%016x"
		}
		name := fmt.Sprintf(form, len(n.shown)+1)
		n.shown[id], n.real[name] = name, id
		return name
	})
}

func (n *names) show(text string) string {
	text = strings.ReplaceAll(text, shownAddress, n.address)
	text = shownReference.ReplaceAllStringFunc(text, func(name string) string {
		return cmp.Or(n.real[name[:2]], name[:2]) + name[2:]
	})
	return volatile.ReplaceAllStringFunc(text, func(name string) string { return cmp.Or(n.real[name], name) })
}
