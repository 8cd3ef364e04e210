package schema

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOfficialSuite runs the required tests of the JSON Schema Test Suite, which the module of one of the engines
// carries. What is accepted must be judged right; what is refused must be refused for a reason that the gate states.
func TestOfficialSuite(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kaptinlin/jsonschema").Output()
	base := filepath.Join(strings.TrimSpace(string(out)), "testdata/JSON-Schema-Test-Suite/tests")
	if _, statErr := os.Stat(base); err != nil || statErr != nil {
		t.Skip("the test suite is not in the module cache: run go mod download")
	}
	for _, tt := range []struct {
		dir, dialect string
		compile      compileFunc
		refused      int // groups of tests whose schema is refused
	}{
		{"draft7", "http://json-schema.org/draft-07/schema#", CompileTrusted, 23},
		{"draft6", "http://json-schema.org/draft-06/schema#", CompileUntrusted, 19},
		{"draft7", "http://json-schema.org/draft-07/schema#", CompileUntrusted, 23},
		{"draft2019-09", "https://json-schema.org/draft/2019-09/schema", CompileUntrusted, 45},
		{"draft2020-12", "https://json-schema.org/draft/2020-12/schema", CompileUntrusted, 51},
	} {
		files, err := filepath.Glob(filepath.Join(base, tt.dir, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no tests: %v", tt.dir, err)
		}
		validated, refused := 0, 0
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var groups []struct {
				Description string
				Schema      json.RawMessage
				Tests       []struct {
					Description string
					Data        json.RawMessage
					Valid       bool
				}
			}
			if err := json.Unmarshal(data, &groups); err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				doc := decode(t, string(g.Schema))
				if m, ok := doc.(map[string]any); ok && m["$schema"] == nil {
					m["$schema"] = tt.dialect
				}
				s, err := tt.compile(Marshal(doc))
				if err != nil {
					refused++
					for _, reason := range []string{"outside", "nested $id", "$dynamicRef", "$recursiveRef", "dialect"} {
						if strings.Contains(err.Error(), reason) {
							err = nil
							break
						}
					}
					if err != nil {
						t.Errorf("%s, %s: %s: %v", tt.dir, filepath.Base(file), g.Description, err)
					}
					continue
				}
				for _, test := range g.Tests {
					validated++
					v := decode(t, string(test.Data))
					vs, err := s.Validate(v)
					if err != nil || (len(vs) == 0) != test.Valid {
						t.Errorf("%s, %s: %s: %s: got %v %v, want valid = %v", tt.dir, filepath.Base(file), g.Description, test.Description, vs, err, test.Valid)
					}
					checkAgreement(t, s, v, vs)
				}
			}
		}
		if refused > tt.refused {
			t.Errorf("%s: %d schemas refused, at most %d before", tt.dir, refused, tt.refused)
		}
		t.Logf("%s: %d values judged, %d schemas refused", tt.dir, validated, refused)
	}
}
