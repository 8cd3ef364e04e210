package scan

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEachFieldOfTruncatedMessage(t *testing.T) {
	var seen []string
	err := EachField([]byte(`{"id":12,"result":{"result":{"value":"xxxxx`), func(key, value []byte) error {
		seen = append(seen, string(key)+"="+string(value))
		return nil
	})
	if err == nil || len(seen) != 1 || seen[0] != "id=12" {
		t.Errorf("%q, %v", seen, err)
	}
}

// FuzzEachField compares EachField with encoding/json on valid JSON.
func FuzzEachField(f *testing.F) {
	for _, seed := range []string{`{}`, `{"id":1,"result":{"a":"\"}"},"x":[1,{"y":null}]}`, `{"a":"\\","b":-1.5e3 }`,
		`{"a`, `[]`, `{"a":1,}`, `{"a":1}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]string{}
		plain := true
		err := EachField(data, func(key, value []byte) error {
			got[string(key)] = string(value)
			plain = plain && !strings.Contains(string(key), `\`)
			return nil
		})
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || want == nil || !plain {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		for key, value := range want {
			if strings.ToValidUTF8(key, "") == key && !strings.Contains(key, "\ufffd") && got[key] != string(value) {
				t.Fatalf("%q: %q is %q, want %q", data, key, got[key], value)
			}
		}
	})
}
