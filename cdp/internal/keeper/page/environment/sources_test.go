package environment

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestSourceMap looks positions up in maps: of one script, of parts, and of what is not a map.
func TestSourceMap(t *testing.T) {
	const simple = `{"version":3,"sources":["a.ts","b.ts"],"names":["f"],"mappings":"AAAA,IACE;;CCAEA,EDEJ,K"}`
	part := func(line, column int, source string) string {
		return fmt.Sprintf(`{"offset":{"line":%d,"column":%d},"map":{"sources":[%q],"mappings":"AAAA,IAAI;AACA"}}`, line, column,
			source)
	}
	indexed := `{"version":3,"sections":[` + part(0, 0, "one") + "," + part(0, 8, "two") + "," + part(2, 4, "three") + "]}"
	for _, test := range []struct {
		file         string
		line, column int
		want         string
	}{
		{simple, 0, 0, "a.ts:1:1"},
		{simple, 0, 3, "a.ts:1:1"},
		{simple, 0, 4, "a.ts:2:3"},
		{simple, 0, 99, "a.ts:2:3"},
		{simple, 1, 0, ""},
		{simple, 2, 0, ""},
		{simple, 2, 2, "b.ts:2:5"},
		{simple, 2, 3, "a.ts:4:1"},
		{simple, 2, 99, ""}, // what follows is in no source
		{simple, 3, 0, ""},
		{`{"sourceRoot":"src","sources":["a.ts"],"mappings":"AAAA"}`, 0, 0, "src/a.ts:1:1"},
		{`{"sourceRoot":"/src/","sources":["a.ts"],"mappings":"AAAA"}`, 0, 0, "/src/a.ts:1:1"},
		{`{"sources":[null,"a.ts"],"mappings":"ACAA"}`, 0, 0, "a.ts:1:1"},
		{`{"sources":["a.ts"],"mappings":"ACAA"}`, 0, 0, ""},
		{`{"sources":["a.ts"],"mappings":"AADA"}`, 0, 0, ""},
		{`{"sources":["a.ts"],"mappings":"AA!A"}`, 0, 0, "error"},
		{`{"sources":["a.ts"],"mappings":"AAAAAA"}`, 0, 0, "error"},
		{`{"sources":["a.ts"],"mappings":"ggggggggggggg"}`, 0, 0, "error"},
		{`{}`, 0, 0, ""},
		{indexed, 0, 4, "one:1:5"},
		{indexed, 0, 7, "one:1:5"},
		{indexed, 0, 8, "two:1:1"},
		{indexed, 0, 12, "two:1:5"},
		{indexed, 1, 0, "two:2:5"},
		{indexed, 2, 3, ""},
		{indexed, 2, 4, "three:1:1"},
		{indexed, 3, 9, "three:2:5"},
	} {
		var m sourceMap
		if err := json.Unmarshal([]byte(test.file), &m); err != nil {
			t.Fatal(err)
		}
		call, found, got := &callFrame{Line: test.line, Column: test.column}, map[*callFrame]callFrame{}, ""
		if err := m.find([]*callFrame{call}, found); err != nil {
			got = "error"
		} else if of, ok := found[call]; ok {
			got = fmt.Sprintf("%s:%d:%d", of.URL, of.Line+1, of.Column+1)
		}
		if got != test.want {
			t.Errorf("%s at %d:%d: %q, want %q", test.file, test.line, test.column, got, test.want)
		}
	}
}

// FuzzSourceMap looks positions up in any file.
func FuzzSourceMap(f *testing.F) {
	f.Add([]byte(`{"sources":["a"],"mappings":"AAAA,IACE;;CCAEA","sections":[{"offset":{"line":1},"map":{}}]}`), 1, 2)
	f.Fuzz(func(t *testing.T, file []byte, line, column int) {
		var m sourceMap
		if json.Unmarshal(file, &m) != nil {
			return
		}
		call, found := &callFrame{Line: line, Column: column}, map[*callFrame]callFrame{}
		if err := m.find([]*callFrame{call, call}, found); err == nil && len(found) == 1 &&
			(found[call].Line < 0 || found[call].Column < 0) {
			t.Errorf("%+v", found[call])
		}
	})
}
