package instrument_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// queryData returns JSON of about size bytes: records, an object of objects, long texts, words, numbers, or one text.
func queryData(kind string, size int) json.RawMessage {
	r := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = []string{"lorem", "ipsum", "dolor", "sit", "amet", "elit", "sed", "magna"}[r.IntN(8)]
		}
		return strings.Join(list, " ")
	}
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		switch id := i * 7919 % 1_000_003; kind {
		case "record":
			fmt.Fprintf(&b, `,{"id":%d,"name":"user%d","age":%d,"score":%d.5,"tags":["%s","%s"],`+
				`"address":{"city":"%s","geo":[%d.5,1]},"created":"2024-%02d-02T10:00:00Z","bio":"%s","parent":null}`, id, r.IntN(100_000), r.IntN(80), r.IntN(100), words(1),
				words(1), words(1), r.IntN(90), 1+r.IntN(12), words(8))
		case "object":
			fmt.Fprintf(&b, `,"key%d":{"a":{"b":{"city":"%s"},"n":%d},"list":[%d,null,true]}`, id, words(1), i, i)
		case "text":
			fmt.Fprintf(&b, ",%q", words(300))
		case "word":
			fmt.Fprintf(&b, `,"%s%d"`, words(1), i)
		case "number":
			fmt.Fprintf(&b, ",%d", r.IntN(1_000_000))
		case "long":
			fmt.Fprintf(&b, " %s", words(1))
		}
	}
	brackets := cmp.Or(map[string]string{"object": "{}", "long": `""`}[kind], "[]")
	return json.RawMessage(brackets[:1] + b.String()[1:] + brackets[1:])
}

// queries are filters by what they are used on. jq runs each in time linear in its data, but for sorting.
var queries = map[string]string{
	"record": `length
.[0:1000]
[.[].name] | length
map({id, city: .address.city}) | length
map(select(.age > 40 and .score > 2)) | length
[.[] | "\(.name) is \(.age)"] | length
map(keys) | length
[path(..)] | length
[paths(type == "number")] | length
[.. | numbers] | length
[recurse(.[]?; true)] | length
walk(if type == "object" then del(.parent) else . end) | length
del(.[].bio) | length
del(.[] | select(.age > 40)) | length
map({(.name): .id}) | add | length
map(.tags) | add | length
map(.tags) | flatten | length
sort_by(.address.city, .age) | length
group_by(.age) | map(length)
unique_by(.name) | length
min_by(.score).id, max_by(.score).id
tojson | fromjson | length
map([.id, .name, .bio] | @csv) | length
map(.created | fromdate | todate) | length
map(.bio | capture("(?<a>[a-z]+) (?<b>[a-z]+)")) | length
[.[] | until(type != "object"; .parent)] | length
[tostream] | length
fromstream(tostream) | length
reduce .[] as $r ({}; .[$r.address.city] += [$r.id]) | length
reduce .[] as $r ([]; . + [$r.id]) | length
[foreach .[] as $r (0; . + $r.age)] | length
INDEX(.id) | length
.[].age += 1 | length
map(.age |= . + 1) | length
map(to_entries | map(.key) | sort) | length
map(pick(.id, .address.city)) | length
any(.[]; .age > 100), all(.[]; .age >= 0)`,
	"object": `map_values(.a.n) | length
to_entries | length
with_entries(.value |= .a.n) | length
map_values(.list |= length) | length
del(.[].list) | length
[.[].a.b.city] | unique
. * {x: 1} | length
keys | length`,
	"text": `map(explode | implode) | length
map(split(" ") | join(",")) | length
map(ascii_downcase) | length
map(index("magna")) | length
map(test("magna$")) | length
map(gsub("[aeiou]"; "")) | length
join(" ") | length`,
	"word": `map(contains("lorem")) | length
map(ltrimstr("lorem")) | length
join(",") | length
map({key: ., value: 1}) | from_entries | length
reduce .[] as $w (""; . + $w) | length
map(. + "x") | add | length
map(@uri) | length
sort | length`,
	"number": `map(. * 2 + 1) | add
map(sqrt | floor) | add
map(tostring | tonumber) | add
. as $a | reduce range(length) as $i (0; . + $a[$i])
map([.]) | add | length
[., .] | transpose | length
to_entries | map(select(.value > 500000)) | length
unique | length
[limit(100; .[])] | add
indices(1) | length`,
	"long": `[scan("[a-z]+")] | length
[splits(" +")] | length
indices("lorem") | length
[match("lorem"; "g").offset] | length
gsub("lorem"; "x") | length
explode | length
split(" ") | group_by(.) | map({k: .[0], n: length})
split(" ") | reduce .[] as $w ({}; .[$w] += 1)`,
}

// TestQueriesAreLinear compares the metered work of json.query on data of two sizes, both too small for a garbage
// collection. One filter in ten runs, by a seed that the test prints; all of them with PARLEY_HAMMER=1.
func TestQueriesAreLinear(t *testing.T) {
	wasm, err := fromPacked("../../../../plugins/json/plugin.wasm.gz")()
	if err != nil {
		t.Fatal(err)
	}
	c := compile(t, rewrite(t, wasm, instrument.Config{}), wazero.NewRuntimeConfig())
	work := func(kind, filter string, size int) int {
		params, err := json.Marshal(map[string]any{"data": queryData(kind, size), "filter": filter})
		if err != nil {
			t.Fatal(err)
		}
		*c.yields = 0
		if _, err := calls(fmt.Sprintf(`{"tool":"query","params":%s}`, params), 1)(c.instance(t)); err != nil {
			t.Fatalf("%s: %v", filter, err)
		}
		return *c.yields
	}
	const size = 8_000
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for kind, filters := range queries {
		for i, filter := range strings.Split(filters, "\n") {
			if !hammer && (uint64(i)+seed)%10 != 0 {
				continue
			}
			small, large := work(kind, filter, size), work(kind, filter, 5*size)
			t.Logf("%.2f %d %d %s %s", float64(large)/float64(small), small, large, kind, filter)
			if large > 6*small {
				t.Errorf("%s of a %s: %d yields, and %d on five times the data", filter, kind, small, large)
			}
		}
	}
	const quadratic = "reduce .[] as $x ([]; [$x] + .)"
	if small, large := work("number", quadratic, size), work("number", quadratic, 5*size); large <= 6*small {
		t.Errorf("%s: %d yields, and only %d on five times the data", quadratic, small, large)
	}
}
