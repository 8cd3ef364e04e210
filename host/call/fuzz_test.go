package call_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/option"
	"github.com/parley-tools/parley/manifest"
)

// FuzzCallParams checks that any parameters lead to a result, or to an error that has next steps and can be encoded,
// and that corrected parameters of an error are accepted.
func FuzzCallParams(f *testing.F) {
	for _, seed := range []string{
		`{"title":"tea"}`, `{}`, `[]`, `{"titel":"a"}`, `{"title":3,"count":"x"}`, `{"title":"a","size":"smal"}`,
		`{"title":"a","tags":"[\"x\"]"}`,
		`{"title":"a","extra":"{\"depth\":\"2\"}"}`, "{\"title\":\"\x00\"}", `{"title":"\ud800"}`,
		`{"title":"a","\u001b[31m":1,"a/b~":2}`, `{"title":"a","count":1e400}`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	h := newHost(f, call.Config{}, newFake(f, shop, nil))
	f.Fuzz(func(t *testing.T, params []byte) {
		ask := func(params []byte) *host.Answer {
			a, _ := h.Call(t.Context(), host.Call{Name: "shop.add", Params: params, Principal: cli})
			return a
		}
		a := ask(params)
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatalf("%q: %v", params, err)
		}
		if a.Err == nil {
			return
		}
		if a.Err.Code != host.InvalidArgs || len(a.Err.Details) == 0 || a.Err.Docs == nil || len(a.Steps) == 0 {
			t.Errorf("%q: %s", params, raw)
		}
		for _, d := range a.Err.Details {
			for _, text := range []string{d.Parameter, d.Provided, d.Expected, d.Suggestion.String(), a.Err.Message,
				fmt.Sprint(a.Steps)} {
				if manifest.Clean(text) != text {
					t.Errorf("%q: %q is not clean", params, text)
				}
			}
		}
		for i := 1; i < len(a.Err.DidYouMean); i++ {
			if a.Err.DidYouMean[i-1].Distance > a.Err.DidYouMean[i].Distance {
				t.Errorf("%q: not nearest first: %v", params, a.Err.DidYouMean)
			}
		}
		if a.Err.Corrected != nil {
			if again := ask(a.Err.Corrected); again.Err != nil {
				t.Errorf("%q: the correction %q is refused: %v %+v", params, a.Err.Corrected, again.Err, again.Err.Details)
			}
		}
	})
}

func FuzzFind(f *testing.F) {
	for _, seed := range []string{"shop.order.list", "shop__order__list", "shop.ordre.lits", "SHOP", "shop.shop.shop.echo",
		"..", "____", "a___b", "shop.\x1b[31m", "\xff", "shop.order."} {
		f.Add(seed)
	}
	c := catalogOf(f, terms{newFake(f, shop, nil)}, newFake(f, strings.Replace(shop, `"shop"`, `"order"`, 1), nil))
	f.Fuzz(func(t *testing.T, name string) {
		a, err := c.Find(name)
		if err == nil {
			if again, err := c.Find(a.Name()); err != nil || again.Name() != a.Name() {
				t.Errorf("%q is found as %s, which is found as %s, %v", name, a.Name(), again.Name(), err)
			}
			return
		}
		e := host.AsError(err)
		if e.Code != host.NotFound || len(e.Steps) == 0 || len(e.DidYouMean) > 3 ||
			manifest.CleanLine(e.Message) != e.Message || len(e.Message) > 400 {
			t.Errorf("%q: %+v", name, e)
		}
		for _, s := range e.DidYouMean {
			if _, err := c.Find(s.Name); err != nil {
				t.Errorf("%q: did you mean %s, which does not exist", name, s.Name)
			}
		}
	})
}

func FuzzParseOptions(f *testing.F) {
	for _, seed := range []string{`{"timeout":"10s","max_bytes":1}`, `{}`, `null`, `{"timeout":"1h","timeout":"2h"}`,
		`{"on_dialog":"\u001b"}`, `{"timeout":"9999999999h"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := option.Parse(raw)
		if err != nil {
			if e := host.AsError(err); e.Code != host.InvalidArgs || manifest.CleanLine(e.Message) != e.Message {
				t.Errorf("%q: %+v", raw, e)
			}
			return
		}
		if err := option.Check(o); err != nil {
			t.Errorf("%q: %+v was accepted and then refused: %v", raw, o, err)
		}
	})
}
