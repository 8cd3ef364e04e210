package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/parley-tools/parley/manifest/spelling"
)

// position is a position in a file, for errors and explanations. Lines and columns begin at 1.
type position struct {
	file         string
	line, column int
}

// problem is something that is wrong in a file.
type problem struct {
	pos  position
	text string
}

// document is a TOML text with the position of each key and value. go-toml's strict decoding into structs ignores the
// case of keys and does not report positions, so this package walks the generic tree itself.
type document struct {
	file     string
	root     map[string]any
	keys     map[string]position // by pathKey: the first position of the key
	values   map[string]position // the first position of the value; arrays have none
	problems []problem
}

// maxNesting limits the nesting of keys and values. The schema needs little; only settings are free.
const maxNesting = 64

// parseDocument parses a TOML text. If it is not TOML, the document has one problem.
func parseDocument(file string, data []byte) *document {
	d := &document{file: file, keys: map[string]position{}, values: map[string]position{}}
	if err := toml.Unmarshal(data, &d.root); err != nil {
		at := position{file: file, line: 1, column: 1}
		text := err.Error()
		if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
			at.line, at.column = decode.Position()
			text = strings.TrimPrefix(decode.Error(), "toml: ")
		}
		if line := strings.Split(string(data), "\n")[at.line-1]; !strings.Contains(line, "=") {
			text += `; the file is TOML: [TABLE] and KEY = VALUE, with quotes around a name such as "mcp:*"`
		}
		d.problems = append(d.problems, problem{at, text})
		d.root = map[string]any{}
		return d
	}
	d.locate(data)
	return d
}

// locate fills in the positions. The text is valid TOML.
func (d *document) locate(data []byte) {
	var lines []int // offset of each line
	for i := range data {
		if i == 0 || data[i-1] == '\n' {
			lines = append(lines, i)
		}
	}
	at := func(r unstable.Range) position {
		offset := int(r.Offset)
		line := sort.SearchInts(lines, offset+1)
		return position{d.file, line, offset - lines[max(line, 1)-1] + 1}
	}
	var last position // position of the last key, for values that have no position of their own
	key := func(prefix string, depth int, element unstable.Iterator) (string, int) {
		for element.Next() && depth <= maxNesting {
			depth++
			prefix = pathKey(prefix, string(element.Node().Data))
			last = at(element.Node().Raw)
			if _, seen := d.keys[prefix]; !seen {
				d.keys[prefix] = last
			}
		}
		return prefix, depth
	}
	var value func(path string, depth int, n *unstable.Node)
	value = func(path string, depth int, n *unstable.Node) {
		if depth > maxNesting {
			if len(d.problems) == 0 {
				d.addProblem(last, "keys and values are nested more than %d deep", maxNesting)
			}
			return
		}
		switch n.Kind {
		case unstable.Array:
			i := 0
			for element := n.Children(); element.Next(); i++ {
				value(pathKey(path, strconv.Itoa(i)), depth+1, element.Node())
			}
		case unstable.InlineTable:
			d.values[path] = at(n.Raw)
			for element := n.Children(); element.Next(); {
				inner, depth := key(path, depth, element.Node().Key())
				value(inner, depth, element.Node().Value())
			}
		default:
			d.values[path] = at(n.Raw)
		}
	}
	var p unstable.Parser
	p.Reset(data)
	table, depth := "", 0
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, depth = key("", 0, e.Key())
			if depth > maxNesting && len(d.problems) == 0 {
				d.addProblem(last, "keys and values are nested more than %d deep", maxNesting)
			}
		case unstable.KeyValue:
			inner, depth := key(table, depth, e.Key())
			value(inner, depth, e.Value())
		}
	}
}

// KeyPositions returns where a key of a valid TOML text first stands, by the names that lead to it: ":LINE:COLUMN", or
// "" if there is no such key.
func KeyPositions(data []byte) func(path []string) string {
	d := &document{keys: map[string]position{}, values: map[string]position{}}
	d.locate(data)
	return func(path []string) string {
		key := ""
		for _, part := range path {
			key = pathKey(key, part)
		}
		if at, found := d.keys[key]; found {
			return fmt.Sprintf(":%d:%d", at.line, at.column)
		}
		return ""
	}
}

// pathKey appends a part to a path; quoting keeps parts apart.
func pathKey(path, part string) string {
	return path + strconv.Quote(part) + "."
}

func (d *document) addProblem(at position, format string, args ...any) {
	d.problems = append(d.problems, problem{at, fmt.Sprintf(format, args...)})
}

// table is a table of a document, and its name for errors.
type table struct {
	doc    *document
	path   string
	name   string
	values map[string]any
}

func (d *document) table() table { return table{doc: d, values: d.root} }

func (t table) keyPos(key string) position { return t.doc.keys[pathKey(t.path, key)] }

// valuePos returns the position of the value of a key.
func (t table) valuePos(key string) position {
	if at, ok := t.doc.values[pathKey(t.path, key)]; ok {
		return at
	}
	return t.keyPos(key)
}

func (t table) addProblem(key, format string, args ...any) {
	t.doc.addProblem(t.valuePos(key), format, args...)
}

// names returns the keys in the order of the file.
func (t table) names() []string {
	return slices.SortedFunc(maps.Keys(t.values), func(a, b string) int { return t.keyPos(a).compare(t.keyPos(b), a, b) })
}

func (p position) compare(q position, a, b string) int {
	return cmp.Or(p.line-q.line, p.column-q.column, strings.Compare(a, b))
}

// allowKeys reports all other keys as problems.
func (t table) allowKeys(known ...string) {
	for _, k := range t.names() {
		if slices.Contains(known, k) {
			continue
		}
		in, hint := "", ""
		if t.name != "" {
			in = " in [" + t.name + "]"
		}
		if near := spelling.Nearest(k, known, 1); len(near) > 0 {
			hint = "; did you mean " + near[0].Name + "?"
		} else {
			hint = "; expected " + strings.Join(known, ", ")
		}
		t.doc.addProblem(t.keyPos(k), "unknown key %s%s%s", quote(k), in, hint)
	}
}

func (t table) subtable(key string) (table, bool) {
	v, ok := t.values[key]
	if !ok {
		return table{}, false
	}
	name := key
	if t.name != "" {
		name = t.name + "." + key
	}
	m, ok := v.(map[string]any)
	if !ok {
		t.addProblem(key, "%s must be a table, not %s: write [%s]", name, typeName(v), name)
		return table{}, false
	}
	return table{t.doc, pathKey(t.path, key), name, m}, true
}

// value reads a value of one type, which is described for errors.
func value[T any](t table, key, expected string) (v T, ok bool) {
	raw, given := t.values[key]
	if v, ok = raw.(T); given && !ok {
		t.addProblem(key, "%s must be %s, not %s", key, expected, typeName(raw))
	}
	return v, ok
}

func (t table) text(key string) (string, bool) { return value[string](t, key, "a string") }

func (t table) boolean(key string) (bool, bool) { return value[bool](t, key, "true or false") }

// integer reads a whole number from 1 to limit; 0 if the key is absent.
func (t table) integer(key string, limit int) int {
	n, ok := value[int64](t, key, "a whole number")
	if !ok {
		return 0
	}
	if n < 1 || n > int64(limit) {
		t.addProblem(key, "%s must be between 1 and %d, not %d", key, limit, n)
		return 0
	}
	return int(n)
}

// oneOf reads one of a few words; "" if the key is absent.
func (t table) oneOf(key string, words ...string) string {
	expected := `"` + strings.Join(words, `" or "`) + `"`
	s, ok := value[string](t, key, expected)
	if ok && !slices.Contains(words, s) {
		t.addProblem(key, "%s must be %s, not %s", key, expected, quote(s))
	}
	return s
}

// duration reads a time such as "30s", of 1ms to a day; 0 if the key is absent.
func (t table) duration(key string) time.Duration {
	const expected = `a time between 1ms and 24h such as "30s"`
	s, ok := value[string](t, key, expected)
	if !ok {
		return 0
	}
	dur, err := time.ParseDuration(s)
	if err != nil || dur < time.Millisecond || dur > 24*time.Hour {
		t.addProblem(key, "%s must be %s, not %s", key, expected, quote(s))
		return 0
	}
	return dur
}

// element is an element of a list of strings.
type element struct {
	text string
	pos  position
}

func (t table) list(key string) ([]element, bool) {
	a, ok := value[[]any](t, key, "a list of strings")
	if !ok {
		return nil, false
	}
	items := make([]element, 0, len(a))
	for i, v := range a {
		at, ok := t.doc.values[pathKey(pathKey(t.path, key), strconv.Itoa(i))]
		if !ok {
			at = t.keyPos(key)
		}
		s, ok := v.(string)
		if !ok {
			t.doc.addProblem(at, "%s must contain strings, not %s", key, typeName(v))
			continue
		}
		items = append(items, element{s, at})
	}
	return items, true
}

// json returns a table as a JSON object. Dates become strings; numbers that JSON does not have are problems.
func (t table) json() json.RawMessage {
	if !t.allFinite(t.path, t.values) {
		return nil
	}
	data, _ := json.Marshal(t.values)
	return data
}

func (t table) allFinite(path string, v any) bool {
	ok := true
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.doc.addProblem(t.doc.values[path], "[%s] contains a number that JSON does not have", t.name)
			return false
		}
	case map[string]any:
		for k, v := range v {
			ok = t.allFinite(pathKey(path, k), v) && ok
		}
	case []any:
		for i, v := range v {
			ok = t.allFinite(pathKey(path, strconv.Itoa(i)), v) && ok
		}
	}
	return ok
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "a whole number"
	case float64:
		return "a fraction"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}
