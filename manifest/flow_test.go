package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

func TestFlowOf(t *testing.T) {
	t.Parallel()
	tool := &manifest.Tool{Name: "copy", Needs: []string{"shop.login"}, Params: []byte(`{"type":"object",
		"required":["order","lines"],"properties":{
		"order":{"type":"object","required":["id"],"properties":{"id":{"x-from":["shop.list/orders/0/id","shop.find/id"]}}},
		"lines":{"type":"array","items":{"type":"integer","x-from":["shop.show/lines/0"]}},
		"to":{"type":"object","required":["shelf"],"properties":{"shelf":{"x-from":["shop.shelves/0"]}}},
		"note":{"x-from":["nonsense","shop.list","shop.list/","/x"]}}}`)}
	var got []string
	f := manifest.FlowOf(tool)
	for _, v := range f.Values {
		one := fmt.Sprintf("%s %v", v.Pointer, v.Required)
		for _, s := range v.From {
			one += " " + s.Tool + s.Result
		}
		got = append(got, one)
	}
	want := []string{"/order/id true shop.list/orders/0/id shop.find/id", "/lines/0 true shop.show/lines/0",
		"/to/shelf false shop.shelves/0"}
	if !slices.Equal(got, want) || len(f.Needs) != 1 || f.Needs[0].Tool != "shop.login" {
		t.Errorf("got %q and %v, want %q", got, f.Needs, want)
	}
	for tier, want := range map[int]string{
		manifest.Tier2: "order.id: shop.list, shop.find|lines: shop.show",
		manifest.Tier3: "order.id: shop.list, shop.find|lines: shop.show|to.shelf: shop.shelves",
	} {
		d := &manifest.ToolDocs{Tier: tier}
		d.SetFlow(f)
		var lines []string
		for _, one := range d.Get {
			lines = append(lines, one.Text())
		}
		if strings.Join(lines, "|") != want || len(d.Needs) != 1 {
			t.Errorf("tier %d: got %q, needs %v", tier, lines, d.Needs)
		}
	}
}

func TestReferencesInExamples(t *testing.T) {
	t.Parallel()
	found := []schema.Violation{{Provided: `string "${1.id}"`}, {Provided: `string "x"`}}
	before := []manifest.BatchLine{{Tool: "shop.list"}}
	if left := manifest.WithoutReferences(&manifest.Example{}, slices.Clone(found)); len(left) != 2 {
		t.Errorf("without calls before: %v", left)
	}
	if left := manifest.WithoutReferences(&manifest.Example{Before: before}, slices.Clone(found)); len(left) != 1 {
		t.Errorf("with a call before: %v", left)
	}
	for params, want := range map[string]bool{`{"id":"${1.id}"}`: true, `{"id":1}`: false} {
		e := manifest.ExampleDoc{Before: before, Params: []byte(params)}
		if e.Refers() != want || (&manifest.ExampleDoc{Params: []byte(params)}).Refers() {
			t.Errorf("%s refers: want %v", params, want)
		}
	}
}
