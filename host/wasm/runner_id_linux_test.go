package wasm

import (
	"reflect"
	"slices"
	"testing"

	"github.com/parley-tools/parley/host/grant"
)

// TestRunnerID checks that specs that differ in any field, however deep, have runners of different names.
func TestRunnerID(t *testing.T) {
	seen := map[string]string{(runnerSpec{}).id(): "none"}
	unset := []string{"Manifest", "Text", "CPU", "Resident", "code", "load"} // not part of what a runner is for
	var s runnerSpec
	var walk func(name string, v reflect.Value)
	walk = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); !slices.Contains(unset, f.Name) {
					walk(name+"."+f.Name, v.Field(i))
				}
			}
			return
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			walk(name, v.Elem())
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			walk(name, v.Index(0))
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"NAME": "value"}))
		case reflect.String:
			v.SetString("text")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Uint64:
			v.SetUint(7)
		default:
			v.SetInt(7)
		}
		id := s.id()
		if other := seen[id]; other != "" && !(v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice) {
			t.Errorf("%s changes nothing: the runner is named as with %s set", name, other)
		}
		seen[id] = name
		v.SetZero()
	}
	walk("spec", reflect.ValueOf(&s).Elem())
	if len(seen) < 40 {
		t.Errorf("only %d fields were tried", len(seen))
	}
	one, two := runnerSpec{}, runnerSpec{}
	one.Grant.Env, two.Grant.Env = map[string]string{"A": "1"}, map[string]string{"A": "2"}
	if one.id() == two.id() {
		t.Error("the value of a variable does not matter")
	}
	one.Grant, two.Grant = grant.Grant{Tools: []string{"a", "b"}}, grant.Grant{Tools: []string{"a,b"}}
	if one.id() == two.id() {
		t.Error("two tools are named as one")
	}
}
