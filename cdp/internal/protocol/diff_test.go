package protocol

import (
	"encoding/json"
	"reflect"
	"testing"
)

const before = `{"version":{"major":"1","minor":"3"},"domains":[
 {"domain":"Old","commands":[{"name":"enable"}]},
 {"domain":"Page","types":[{"id":"Frame","type":"object","properties":[{"name":"id","type":"string"},{"name":"gone","type":"string"}]},{"id":"Kind","type":"string","enum":["a","b"]}],
  "commands":[{"name":"stay","description":"One text.","parameters":[{"name":"url","type":"string"},{"name":"kind","$ref":"Kind","optional":true}],"returns":[{"name":"url","type":"string"}]},
   {"name":"leave","parameters":[{"name":"x","type":"string"}]}],
  "events":[{"name":"done","parameters":[{"name":"data","type":"string"}]}]}]}`

const after = `{"version":{"major":"1","minor":"3"},"domains":[
 {"domain":"Page","experimental":true,"types":[{"id":"Kind","type":"string","enum":["c","b","a"]},{"id":"Frame","type":"object","properties":[{"name":"id","type":"integer"},{"name":"nested","type":"object","properties":[]}]}],
  "commands":[{"name":"come"},{"name":"stay","description":"Another text.","deprecated":true,"parameters":[{"name":"kind","$ref":"Kind"},{"name":"url","type":"string"},{"name":"list","type":"array","items":{"type":"string"}}],"returns":[{"name":"url","type":"array","items":{"$ref":"Frame"}}]}],
  "events":[{"name":"done","parameters":[{"name":"data","type":"binary"}]},{"name":"again"}]},
 {"domain":"New","commands":[{"name":"enable"}]}]}`

func TestDiff(t *testing.T) {
	was, err := Parse([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	is, err := Parse([]byte(after))
	if err != nil {
		t.Fatal(err)
	}
	none := []string{}
	want := Difference{
		Domains: Changes{[]string{"New"}, []string{"Old"}, []Change{{"Page", "experimental", "false", "true"}}},
		Methods: Changes{[]string{"New.enable", "Page.come"}, []string{"Old.enable", "Page.leave"},
			[]Change{{"Page.stay", "deprecated", "false", "true"}}},
		Events: Changes{[]string{"Page.again"}, none, []Change{}},
		Types:  Changes{none, none, []Change{{"Page.Kind", "enum", "a|b", "a|b|c"}}},
		Parameters: Changes{[]string{"Page.Frame.nested", "Page.stay.list"}, []string{"Page.Frame.gone"}, []Change{
			{"Page.Frame.id", "type", "string", "integer"},
			{"Page.done.data", "binary", "false", "true"},
			{"Page.stay.kind", "optional", "true", "false"},
			{"Page.stay.returns.url", "type", "string", "array"},
			{"Page.stay.returns.url", "items", "", "Frame"},
		}},
	}
	got := Diff(was, is)
	if !reflect.DeepEqual(got, want) {
		a, _ := json.MarshalIndent(got, "", " ")
		b, _ := json.MarshalIndent(want, "", " ")
		t.Errorf("got %s\nwant %s", a, b)
	}
	if n := got.Count(); n != 18 {
		t.Errorf("%d differences", n)
	}
	back := Diff(is, was)
	if !reflect.DeepEqual(back.Methods.Added, got.Methods.Removed) ||
		!reflect.DeepEqual(back.Parameters.Removed, got.Parameters.Added) || back.Count() != got.Count() {
		t.Errorf("in the other direction: %+v", back)
	}
	if d := Diff(Embedded(), Embedded()); d.Count() != 0 {
		t.Errorf("a protocol differs from itself: %+v", d)
	}
}
