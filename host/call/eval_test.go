package call_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/search"
)

func TestReadEval(t *testing.T) {
	set,
		err := eval.Read(strings.NewReader(`{"query":"list orders","kind":"exact","half":"a","relevant":{"shop.order.list":3,"shop.add":0},"note":"kept"}

  {"query":"sell","relevant":{"shop.add":1.5}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []eval.Query{
		{Query: "list orders", Kind: "exact", Half: "a", Relevant: map[string]float64{"shop.order.list": 3, "shop.add": 0}},
		{Query: "sell", Relevant: map[string]float64{"shop.add": 1.5}},
	}
	if !reflect.DeepEqual(set, want) {
		t.Errorf("got %+v", set)
	}
}

func TestReadEvalRefuses(t *testing.T) {
	const good = `{"query":"a","relevant":{"shop.add":1}}` + "\n"
	for _, c := range []struct{ text, message string }{
		{"", "the set is empty"},
		{"\n \n", "the set is empty"},
		{good + "nonsense\n", "line 2: not a JSON object"},
		{good + good + "[]", "line 3: "},
		{good + `{"query":7,"relevant":{"shop.add":1}}`, "line 2: query is a JSON number; expected a string"},
		{good + `{"query":"a","relevant":["shop.add"]}`, "line 2: relevant is a JSON array; expected names with grades"},
		{`{"query":" ","relevant":{"shop.add":1}}`, "line 1: query is missing"},
		{`{"query":"a"}`, "line 1: relevant has no tool"},
		{`{"query":"a","relevant":{"shop.add":0}}`, "line 1: relevant has no tool"},
		{`{"query":"a","relevant":{"shop.add":-1}}`, "line 1: shop.add has grade -1; expected 0 to 10"},
		{`{"query":"a","relevant":{"shop.add":11}}`, "expected 0 to 10"},
		{`{"query":"a","relevant":{"shop.add":1}} {}`, "line 1: "},
		{good + "x\n" + good + "y", "line 4: "},
		{good + strings.Repeat("x", 2<<20), "line 2: more than 1048576 bytes"},
		{strings.Repeat("x\n", 1000), "line 20: "},
	} {
		_, err := eval.Read(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%.40q: the error is %v, expected %q in it", c.text, err, c.message)
		}
	}
}

func TestEvaluate(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, shop, nil))
	set,
		err := eval.Read(strings.NewReader(`{"query":"order.list","kind":"exact","half":"a","relevant":{"shop.order.list":3}}
{"query":"SHOP add","kind":"exact","half":"b","relevant":{"SHOP__add":1}}
{"query":"cancel an order","kind":"concept","half":"a","relevant":{"shop.order.cancel":3,"shop.order.list":1}}
{"query":"paint a wall","kind":"concept","half":"b","relevant":{"shop.gone":3}}
`))
	if err != nil {
		t.Fatal(err)
	}
	r := eval.Evaluate(set, h.Catalog(), search.Order{})
	if !slices.Equal(r.Unknown, []string{"shop.gone"}) || len(r.Misses) != 1 || r.Misses[0].Query != "paint a wall" {
		t.Errorf("unknown %v, misses %+v", r.Unknown, r.Misses)
	}
	var rows []string
	for _, s := range r.Scores {
		rows = append(rows, s.Half+"/"+s.Kind)
		want := 1.0
		if s.Kind == "concept" || s.Kind == "all" {
			want = map[string]float64{"a/concept": 1, "b/concept": 0, "/concept": 0.5, "a/all": 1, "b/all": 0.5,
				"/all": 0.75}[s.Half+"/"+s.Kind]
		}
		if s.Success1 != want || s.Success5 != want || s.MRR != want || math.Abs(s.NDCG10-want) > 0.1 {
			t.Errorf("%+v, expected %g", s, want)
		}
	}
	if want := []string{"/exact", "/concept", "/all", "a/exact", "a/concept", "a/all", "b/exact", "b/concept",
		"b/all"}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, expected %v", rows, want)
	}
	if again := eval.Evaluate(set, h.Catalog(), search.Order{}); !reflect.DeepEqual(r, again) {
		t.Error("two runs differ")
	}
}

// TestEvaluateCounts evaluates a query whose relevant tool is the second hit, after a related one.
func TestEvaluateCounts(t *testing.T) {
	h := newHost(t, call.Config{}, newFake(t, shop, nil))
	data, _, err := h.Search(t.Context(), caller.Principal{}, search.Query{Text: "order"})
	if err != nil || len(data.Results) < 2 {
		t.Fatal(data, err)
	}
	first, second := data.Results[0].Name, data.Results[1].Name
	set := []eval.Query{{Query: "order", Relevant: map[string]float64{first: 1, second: 3}}}
	r := eval.Evaluate(set, h.Catalog(), h.Order())
	ndcg := (1 + 7/math.Log2(3)) / (7 + 1/math.Log2(3))
	if s := r.Scores[0]; s.Kind != "all" || s.Success1 != 0 || s.Success5 != 1 || s.MRR != 0.5 ||
		math.Abs(s.NDCG10-ndcg) > 1e-4 {
		t.Errorf("%+v, expected NDCG@10 %.4f", s, ndcg)
	}
}

func FuzzEval(f *testing.F) {
	h := newHost(f, call.Config{}, newFake(f, shop, nil))
	f.Add([]byte(`{"query":"order","kind":"exact","half":"a","relevant":{"shop.order.list":3}}`))
	f.Add([]byte("{\"query\":\"\\u0000\",\"kind\":\"all\",\"relevant\":{\"\":1e-300,\"shop\":10}}\n\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := eval.Read(strings.NewReader(string(text)))
		if err != nil {
			return
		}
		r := eval.Evaluate(set[:min(20, len(set))], h.Catalog(), search.Order{})
		for _, s := range r.Scores {
			for _, x := range []float64{s.Success1, s.Success5, s.MRR, s.NDCG10} {
				if !(x >= 0 && x <= 1) {
					t.Fatalf("%+v", s)
				}
			}
		}
	})
}
