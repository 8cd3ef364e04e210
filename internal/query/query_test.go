package query

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"
)

// run returns the results of a filter as JSON, with its error as the last one. Results are encoded at the end: none may
// change after it was given.
func run(ctx context.Context, code *gojq.Code, input any) (results []string) {
	defer func() {
		if v := recover(); v != nil {
			results = append(results, fmt.Sprint("panic: ", v))
		}
	}()
	var values []any
	for iter := code.RunWithContext(ctx, input); len(values) < 200; {
		v, ok := iter.Next()
		if !ok {
			break
		}
		values = append(values, v)
		if _, failed := v.(error); failed {
			break
		}
	}
	for _, v := range values {
		if err, failed := v.(error); failed {
			results = append(results, "error: "+err.Error())
			continue
		}
		results = append(results, fmt.Sprint(gojq.TypeOf(v), string(must(gojq.Marshal(v)))))
	}
	return results
}

func panics(result string) bool { return strings.HasPrefix(result, "panic: ") }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// decoded returns the value of a JSON text, with numbers as json.Number or, as plugins have them, as int and float64.
func decoded(text string, numbers bool) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	if numbers {
		return v
	}
	return normal(v)
}

func normal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.Atoi(v.String()); err == nil {
			return i
		}
		return must(v.Float64())
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = normal(v[key])
		}
	}
	return v
}

// same compares a filter on an input with gojq. It is false if the filter does not compile.
func same(t *testing.T, text, input string) bool {
	q, err := gojq.Parse(text)
	if err != nil {
		return false
	}
	plain, wantErr := gojq.Compile(q)
	code, err := Compile(text)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%s: %v; gojq: %v", text, err, wantErr)
	}
	if err != nil {
		return false
	}
	for _, numbers := range []bool{true, false} {
		v := decoded(input, numbers)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		want := run(ctx, plain, decoded(input, numbers))
		cancel()
		if ctx.Err() == context.DeadlineExceeded || slices.ContainsFunc(want, panics) {
			return false // a list that doubles in each round; a fault of gojq
		}
		for range 2 { // constants of the filter must not change either
			if got := run(t.Context(), code, v); !slices.Equal(got, want) {
				t.Fatalf("%s\nof %s:\n%s\ngojq:\n%s", text, input, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		if !reflect.DeepEqual(v, decoded(input, numbers)) {
			t.Fatalf("%s\nof %s changed it: %s", text, input, must(gojq.Marshal(v)))
		}
	}
	return true
}

// grammar has the forms of random filters. Upper-case words are replaced by one of their forms.
var grammar = map[string][]string{
	"FILTER": {"reduce SOURCE as $x (INIT; UPDATE)", "reduce SOURCE as $x (INIT; UPDATE)",
		"foreach SOURCE as $x (INIT; UPDATE; EXTRACT)", "[foreach SOURCE as $x (INIT; UPDATE; EXTRACT)]",
		"reduce SOURCE as [$x, $y] (INIT; UPDATE)", "reduce SOURCE as {a: $x} (INIT; UPDATE)",
		"[FILTER | ..]", "walk(UPDATE)", "[paths(VALUE)]", "with_entries(UPDATE)", "map_values(UPDATE)", "[..] | FILTER",
		"def f: VALUE; reduce SOURCE as $x (INIT; UPDATE | f)", "INDEX(.k)", "INDEX(SOURCE; .a, .b)", "try (FILTER) catch .",
		"(FILTER) | (FILTER)", "[FILTER, FILTER]", ". as $y | FILTER", "fromstream(tostream)", "[fromstream(SOURCE)]",
		"fromstream(tostream, ([[0], 1], [[0]]))",
		"pick(.[0].a, .[1])", "path(FILTER)", "label $out | FILTER",
		"def has(f): 1, 2; FILTER", "[limit(3; FILTER)]", "reduce SOURCE as [$x] ?// $x (INIT; UPDATE)"},
	"SOURCE": {".[]", ".[]", ".[]", "range(4)", "(1, 2, 3)", ".[], .[]", "tostream", "paths", "to_entries[]", "(.[] | .a)",
		`("a", "b", "a")`, "empty"},
	"INIT": {"{}", "[]", "null", "0", `""`, ".", ".[0]", "[[]]", "{a: [], b: {}}", "{}, []", "$ENV | {}", `{a: "x"}`},
	"UPDATE": {"PATH = VALUE", "PATH += VALUE", "PATH |= UPDATE", "PATH OP= VALUE", ". + VALUE", ". * VALUE", ". // VALUE",
		"PATH = (PATH // []) + VALUE", "PATH = PATH + VALUE", "UPDATE | UPDATE", "UPDATE | UPDATE",
		"if VALUE then UPDATE else UPDATE end", "if VALUE then UPDATE elif VALUE then UPDATE end",
		"VALUE as $z | UPDATE", "VALUE as [$z] | UPDATE", "(UPDATE)", "(UPDATE) + VALUE",
		"reduce VALUE as $z (.; UPDATE)", "reduce $x[]? as $z (UPDATE; UPDATE)", "setpath(KEYS; VALUE)", ".", "VALUE",
		"UPDATE, UPDATE", "empty", "del(PATH)", "error(VALUE)", "label $l | UPDATE", "break $out", "try (UPDATE) catch .",
		"map(VALUE)", "map_values(UPDATE)", ". as $z | UPDATE", "(UPDATE) as $z | UPDATE", "foreach VALUE as $z (.; UPDATE)",
		"PATH = (PATH | UPDATE)", ".[length] = VALUE", "{a: PATH, b: PATH}", "[PATH, PATH]", "[.]", "{a: .}", ".[-1] = VALUE",
		".[1:2] = VALUE", ".[$x[]?] += VALUE"},
	"PATH": {".a", ".b", ".[KEY]", ".[KEY]", ".a.b", ".a[KEY]", ".[KEY].b", ".[KEY][KEY]", ".[0]", `."a"`, ".", ".a[]?",
		".[KEY]?", ".a.b.c", "(.a, .b)", ".[3]"},
	"KEY": {"$x", "$x.a", "$x.k", `"a"`, `"b"`, "0", "1", ".k", "length", "($x | tostring)", `"k\($x)"`, "$x, 1", "null",
		"(.a | length)", "1.5", "-1"},
	"KEYS": {"[KEY]", "[KEY, KEY]", "[]", "KEY", "$x", "$x[0]", "[KEY, {}]"},
	"VALUE": {"1", "$x", "[$x]", "{a: $x}", "$x.a", "$x.k", ".a", ".", "[.]", "{b: .a}", ".a // 1", "length", "null", "[]",
		"{}",
		`"s"`, `"\($x)t"`, "(.a | length)", "has(KEY)", "PATH", "keys", "map(.)", "($x, 2)", "empty", ".[KEY]", "1.5", "12345678901234567890",
		"{(KEY): VALUE}", "VALUE + VALUE", "not", "to_entries", "f", "input", "9007199254740993", "[.[]?]", "first(.[]?)",
		"$y",
		"if VALUE then VALUE else VALUE end", "(VALUE | VALUE)", "any", "$z", "getpath(KEYS)", "sort", "-$x", "false"},
	"EXTRACT": {".", ".a", "VALUE", "VALUE", "length", ".[]?", "empty", "if VALUE then . else empty end"},
	"OP":      {"-", "*", "/", "%", "//"},
}

func random(r *rand.Rand, form string, depth int) string {
	var b strings.Builder
	for i := 0; i < len(form); {
		end := i
		for end < len(form) && 'A' <= form[end] && form[end] <= 'Z' {
			end++
		}
		forms, ok := grammar[form[i:end]]
		if !ok {
			end = max(end, i+1)
			b.WriteString(form[i:end])
			i = end
			continue
		}
		if depth <= 0 { // the first ones are short
			forms = forms[:min(3, len(forms))]
		}
		b.WriteString(random(r, forms[r.IntN(len(forms))], depth-1))
		i = end
	}
	return b.String()
}

var inputs = []string{
	`[{"a":1,"k":"x","b":[1]},{"a":2.5,"k":"y","b":[]},{"a":"s","k":"x","b":{"c":1}},{"a":[1,2],"k":"z"}]`,
	`[["a",1],["b",2],["a",[3]]]`, `{"a":{"b":1,"c":[1,2]},"b":[],"k":"v"}`, `[1,2,2,0,12345678901234567890,1e3]`, `null`, `"x"`,
	`[[[0],1],[[1],2],[[1]]]`, `[{"a":{"a":1}},{"a":{"b":{"c":2}}},{"a":null},{"a":false}]`, `["a","b","a","c"]`, `{}`, `[]`,
	`[[0,{"a":[1]}],[1,{"a":[]}]]`, `[0.5, 1, 1.5, 2, -1, 1e0, 0.0, -0, {"a": 1.5, "k": 1e0}, {"a": 0, "k": 0.5}]`,
}

// TestSameAsPlain compares random filters with gojq.
func TestSameAsPlain(t *testing.T) {
	const rounds = 2_000
	seed, _ := strconv.ParseUint(os.Getenv("QUERY_SEED"), 10, 64)
	r := rand.New(rand.NewPCG(seed, 2))
	rewritten, ran := 0, 0
	for range rounds {
		text := random(r, "FILTER", 4)
		if len(text) > 2000 || !same(t, text, inputs[r.IntN(len(inputs))]) {
			continue
		}
		ran++
		q := must(gojq.Parse(text))
		c := &compiler{done: map[any]bool{}}
		if visit(q, c.rewrite); len(c.done) > 0 {
			rewritten++
		}
	}
	t.Logf("%d ran, %d of them rewritten", ran, rewritten)
	if ran < rounds/4 || rewritten < ran/8 {
		t.Errorf("of %d filters %d ran, of which %d were rewritten", rounds, ran, rewritten)
	}
}

// TestSameTexts compares the functions of regular expressions with gojq.
func TestSameTexts(t *testing.T) {
	patterns := []string{"o", "", "a*", "(?<x>a)|(?<y>b)", "[0-9]+", "é", "^", "$", `\b`, "(a)(b)?", "[", "(?<x>é(?<y>.?))",
		"ab|a", "(?:)", ".", `\s+`, "(a*)*"}
	flags := []string{"null", `""`, `"g"`, `"gi"`, `"n"`, `"gm"`, "1", `"g", "i"`}
	forms := []string{"[match(P; F)]", "[match([P, F])]", "[match(P)]", "[scan(P)]", "[scan(P; F)]", "[splits(P)]",
		"splits(P; F)",
		"split(P; F)", `sub(P; "<\(.x)>"; F)`, `gsub(P; "-")`, `[gsub(P; "a", "b", "")]`, `[sub(P; .y, "z"; F)]`, "gsub(P; empty)",
		"gsub(P; 1)", "gsub(P; null)", "[capture(P; F)]", "capture(P)", `gsub(P; .x + "!"; F)`, `[sub(P; if .x then 1, "k" else "m" end; F)]`,
		`try gsub(P; error(.)) catch .`, `def match(a; b): 1; [scan(P; F), sub(P; "x"; F)]`, "test(P; F)", "path(splits(P))"}
	texts := []string{`""`, `"aébab a12 ÄÖ abba"`, `"ooo"`, `"\ud800 a"`, "1", "null", `["a"]`, `"a\nb\n"`, `"aaéaa"`}
	for _, form := range forms {
		for _, p := range patterns {
			for _, f := range flags {
				filter := strings.NewReplacer("P", string(must(json.Marshal(p))), "F", f).Replace(form)
				for _, text := range texts {
					same(t, filter, text)
				}
				if !strings.Contains(form, "F") {
					break
				}
			}
		}
	}
}

// randomValue returns the JSON of a value that looks like entries, documents and plain data.
func randomValue(r *rand.Rand, depth int) string {
	scalars := []string{"null", "true", "false", "0", "1", "1.50", "-2", "12345678901234567890", `""`, `"a"`, `"key"`, "[]", "{}"}
	kind := r.IntN(5)
	if depth == 0 || kind < 2 {
		return scalars[r.IntN(len(scalars))]
	}
	var items []string
	for range r.IntN(4) {
		items = append(items, randomValue(r, depth-1))
	}
	if kind == 2 {
		return "[" + strings.Join(items, ",") + "]"
	}
	names := []string{"key", "Key", "name", "Name", "value", "Value", "k", "b", "é", ""}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for i := range items {
		items[i] = string(must(json.Marshal(names[i]))) + ":" + items[i]
	}
	return "{" + strings.Join(items, ",") + "}"
}

// randomEntries returns the JSON of a list of objects that from_entries may take.
func randomEntries(r *rand.Rand) string {
	entries := make([]map[string]any, r.IntN(3))
	for i := range entries {
		entries[i] = map[string]any{}
		for _, name := range []string{"key", "Key", "name", "Name", "value", "Value"} {
			if values := []any{nil, false, name, name + "2", name + "3"}; r.IntN(2) == 0 {
				entries[i][name] = values[r.IntN(len(values))]
			}
		}
	}
	return string(must(json.Marshal(entries)))
}

// TestSameTrees compares the functions that go through a value, or make and join its entries, with gojq.
func TestSameTrees(t *testing.T) {
	filters := strings.Split(`[paths]
[paths(type == "number")]
[paths(., true)]
try [paths(error)] catch .
[paths(empty)]
[..]
[.. | scalars]
[recurse]
[recurse(.[]?; . != 1)]
first(..), [limit(3; .., paths, tostream)]
[tostream]
fromstream(tostream)
[tostream | select(length == 1)]
to_entries
[.[]? | to_entries?]
to_entries | from_entries
from_entries
map(from_entries)
[.[]? | try from_entries catch .]
with_entries(.)
with_entries(.key |= "x" + tostring)
with_entries(select(.value))
with_entries(.value, .key)
try with_entries(.key = 1) catch .
map_values(.)
map_values(empty)
map_values(select(. != null))
map_values(., error)
map_values(1, 2)
try map_values(error) catch .
[map_values(.[]?)]
walk(.)
[walk(., 1)]
[walk(.[0]?, .)] | length
walk(if type == "object" then del(.k) else . end)
walk(if type == "array" then .[0] else . end)
walk(select(. != 1))
walk(empty)
try walk(error) catch .
walk(if type == "object" then to_entries else . end)
[label $f | .., break $f]
reduce .. as $x ([]; . + [$x])
reduce paths as $p ({}; .[$p | tojson] = 1)
. as $v | [paths | . as $p | $v | getpath($p)]
[path(..)]
[path(.. | select(type == "number"))]
try [path(paths)] catch .
try path(to_entries) catch .
del(.. | select(. == 1)?)
try (..=1) catch .
(.. | select(type == "number")) |= 1
[path(.[]? | select([..] | length > 1))] + [..]
def paths: 1; [paths, ..]
def recurse: 1; [.., recurse]
def to_entries: [{key: "a", value: 1}]; to_entries, with_entries(.)
def f: ..; [f], try [path(f)] catch .
def w(f): walk(f); w(.), with_entries(.)?
[.[]? as [$a] ?// $a | $a | ..]
[splits("a")?, ..]
[limit(1; paths(..))]
any(..; . == 1), all(paths; length > 0)
[getpath(paths)]
[tostream] | tojson`, "\n")
	r := rand.New(rand.NewPCG(3, 4))
	for _, filter := range filters {
		ran := false
		for range 60 {
			ran = same(t, filter, randomValue(r, 4)) || ran
			ran = same(t, filter, randomEntries(r)) || ran
		}
		if !ran {
			t.Errorf("%s does not compile", filter)
		}
	}
}

// TestLinear checks that filters allocate in proportion to the data. In gojq most of these allocate a copy for each
// item, which is sixteen times as much for four times the data.
func TestLinear(t *testing.T) {
	objects := func(n int) any {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"id": i * 7919 % 1_000_003, "k": "key" + strconv.Itoa(i), "g": "g" + strconv.Itoa(i%5),
				"v": json.Number(strconv.Itoa(i)), "tags": []any{"a", "b"}, "text": "lorem ipsum dolor sit amet"}
		}
		return list
	}
	text := func(n int) any { return strings.Repeat("wörd1 lorem ipsum, dolor ", n) }
	for _, c := range []struct {
		data    func(n int) any
		filters string
	}{
		{objects, `INDEX(.id)
INDEX(.[]; .k)
reduce .[] as $x ({}; .[$x.k] = $x)
reduce .[] as $x ({}; .[$x.k] += 1)
reduce .[] as $x ({}; .[$x.g] += $x.v)
reduce .[] as $x ({}; .[$x.g] += [$x])
reduce .[] as $x ({}; .[$x.g] += $x.text)
reduce .[] as $x ([]; . + [$x.id])
reduce .[] as $x (""; . + $x.text)
reduce .[] as $x ({}; .[$x.k] |= . + 1)
reduce .[] as $x ({}; .[$x.g] |= (. // []) + [$x])
reduce .[] as $x ({}; .[$x.g] = (.[$x.g] // []) + [$x])
reduce .[] as $x ({}; . + {($x.k): $x.v})
reduce .[] as $x ({}; . += {($x.k): $x.v})
reduce .[] as $x ({}; . * {($x.k): {v: 1}})
reduce .[] as $x ({}; .[$x.k].n += 1 | .[$x.k].sum += $x.v)
reduce .[] as {k: $k, v: $v} ({}; .[$k] = $v)
reduce .[] as $x ({}; if has($x.k) then . else .[$x.k] = $x.v end)
reduce .[] as $x ({seen: {}, out: []}; if .seen[$x.k] then . else .seen[$x.k] = true | .out += [$x] end)
reduce .[] as $x ({}; reduce $x.tags[] as $t (.; .[$t + $x.k] += 1))
reduce .[] as $x ({}; setpath([$x.k]; $x))
reduce .[] as $x ([]; .[length] = $x)
reduce range(length) as $i (.; .[$i].v = 0)
[foreach .[] as $x ({}; .[$x.k] += 1; length)]
JOIN(INDEX(.[]; .k); .k)
fromstream(tostream)
pick(.[].id)
map({key: .k, value: .v}) | from_entries
group_by(.g)
[tostream]
walk(.)
map(with_entries(.value |= tostring))
del(.[] | select(.v > 50))
[paths]
[paths(type == "number")]
[..]
[tostream]
map(to_entries)`},
		{text, `gsub("o"; "0")
sub("o"; "0"; "g")
gsub("(?<a>[a-z])[0-9]"; "\(.a)")
[match("w(ö)"; "g")]
[scan("[0-9]+")]
[splits(", *")]
split(", *"; null)
[capture("(?<n>[0-9]+)"; "g")]
split(" ") | reduce .[] as $w ({}; .[$w] += 1)`},
	} {
		for _, filter := range strings.Split(c.filters, "\n") {
			code := must(Compile(filter))
			cost := func(n int) (bytes uint64) {
				data := c.data(n)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for iter := code.Run(data); ; {
					v, ok := iter.Next()
					if !ok {
						break
					}
					if err, failed := v.(error); failed {
						t.Fatalf("%s: %v", filter, err)
					}
				}
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc
			}
			const quarter = 1000
			small := cost(quarter)
			if large := cost(4 * quarter); large > 6*small {
				t.Errorf("%s allocates %d bytes, with four times the data %d", filter, small, large)
			}
		}
	}
}
