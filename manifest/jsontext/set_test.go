package jsontext

import "testing"

func TestSet(t *testing.T) {
	for _, c := range []struct {
		data string
		path []string
		want string
	}{
		{`{"b":1,"a":2}`, nil, `{"b":1,"a":7}`},
		{`{ "b" : {"x":[{"a":1}]} }`, nil, `{ "b" : {"x":[{"a":1}]} ,"a":7}`},
		{`{}`, nil, `{"a":7}`},
		{`{"p":{"q":{"z":1}},"a":1}`, []string{"p", "q"}, `{"p":{"q":{"z":1,"a":7}},"a":1}`},
		{`{"p":{"a" : "x" ,"b":2}}`, []string{"p"}, `{"p":{"a" : 7 ,"b":2}}`},
		{`{"p":[1]}`, []string{"p"}, `{"p":[1]}`},
		{`{"p":{}}`, []string{"q"}, `{"p":{}}`},
		{`[1]`, nil, `[1]`},
	} {
		if got := string(Set([]byte(c.data), c.path, "a", []byte("7"))); got != c.want {
			t.Errorf("%s at %v: %s, want %s", c.data, c.path, got, c.want)
		}
	}
}
