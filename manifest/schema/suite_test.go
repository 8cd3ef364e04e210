package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// suites are the parts of the JSON Schema Test Suite that are run, and how many groups of tests the gate refuses.
var suites = []struct {
	dir, dialect string
	compile      compileFunc
	refused      int
}{
	{"draft7", "http://json-schema.org/draft-07/schema#", CompileTrusted, 23},
	{"draft7", "http://json-schema.org/draft-07/schema#", CompileUntrusted, 23},
	{"draft2020-12", "https://json-schema.org/draft/2020-12/schema", CompileUntrusted, 52},
}

// suiteGroup is a schema of the suite with the values that are validated against it.
type suiteGroup struct {
	file        string // "draft7/allOf.json"
	key         string // of the schema and the values: it changes when the suite does
	schema      any    // decoded, with the dialect named
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// suiteGroups reads the required tests of a draft. The suite comes in the module of google/jsonschema-go, which the MCP
// SDK depends on.
func suiteGroups(t *testing.T, dir, dialect string) []suiteGroup {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	base := filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata")
	files, globErr := filepath.Glob(filepath.Join(base, dir, "*.json"))
	if err != nil || globErr != nil || len(files) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the JSON Schema Test Suite is missing from %s (%v): run go mod download", base, err)
		}
		t.Skip("the JSON Schema Test Suite is not in the module cache: run go mod download")
	}
	var all []suiteGroup
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []suiteGroup
		if err := json.Unmarshal(data, &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			g.file = dir + "/" + filepath.Base(file)
			g.schema = decode(t, string(g.Schema))
			if m, ok := g.schema.(map[string]any); ok && m["$schema"] == nil {
				m["$schema"] = dialect
			}
			hash := sha256.New()
			hash.Write(jsontext.Marshal(g.schema))
			for _, test := range g.Tests {
				hash.Write(jsontext.Marshal(decode(t, string(test.Data))))
			}
			g.key = hex.EncodeToString(hash.Sum(nil)[:4])
			all = append(all, g)
		}
	}
	return all
}

// TestOfficialSuite runs the required tests of the JSON Schema Test Suite. Each schema either has the right verdicts
// or is refused for a reason that the gate states.
func TestOfficialSuite(t *testing.T) {
	for _, tt := range suites {
		validated, refused := 0, 0
		for _, g := range suiteGroups(t, tt.dir, tt.dialect) {
			s, err := tt.compile(jsontext.Marshal(g.schema))
			if err != nil {
				refused++
				for _, reason := range []string{"outside", "nested $id", "$dynamicRef", "$recursiveRef", "dialect"} {
					if strings.Contains(err.Error(), reason) {
						err = nil
						break
					}
				}
				if err != nil {
					t.Errorf("%s: %s: %v", g.file, g.Description, err)
				}
				continue
			}
			for _, test := range g.Tests {
				validated++
				v := decode(t, string(test.Data))
				vs, err := s.Validate(v)
				if err != nil || (len(vs) == 0) != test.Valid {
					t.Errorf("%s: %s: %s: got %v %v, want valid = %v", g.file, g.Description, test.Description, vs, err, test.Valid)
				}
				checkViolations(t, s, v, vs)
			}
		}
		if refused > tt.refused {
			t.Errorf("%s: %d schemas refused, at most %d before", tt.dir, refused, tt.refused)
		}
		t.Logf("%s: %d values validated, %d schemas refused", tt.dir, validated, refused)
	}
}
