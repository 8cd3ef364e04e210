package schema

import "testing"

func TestBothEnginesTellTheSame(t *testing.T) {
	raw := []byte(`{"type":"object","properties":{"urls":{"type":"array","items":{"type":"string"}}},"required":["urls"],"additionalProperties":false}`)
	for name, compile := range map[string]func([]byte) (*Schema, error){"own": Own, "foreign": Foreign} {
		s, err := compile(raw)
		if err != nil {
			t.Fatal(err)
		}
		vs, err := s.Validate(map[string]any{"urls": []any{3}})
		if err != nil || len(vs) != 1 || vs[0].Pointer != "/urls/0" || vs[0].Provided != "number 3" || vs[0].Expected != "string" {
			t.Errorf("%s: %v %v", name, vs, err)
		}
	}
}
