package policy

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pelletier/go-toml/v2"

	format "github.com/parley-tools/parley/manifest/document"
)

//go:embed schema.json
var schemaJSON []byte

var fileSchema = sync.OnceValues(func() (*format.Schema, error) { return format.Compile(schemaJSON) })

// checkSchema validates a policy file by the schema of policies, which is for editors and people. It repeats what
// parseFile checks, by other code and without positions.
func checkSchema(data []byte) error {
	s, err := fileSchema()
	if err != nil {
		return err
	}
	doc := map[string]any{}
	if err := toml.Unmarshal(data, &doc); err != nil {
		return err
	}
	violations, err := s.Validate(doc)
	if err != nil {
		return err
	}
	if len(violations) > 0 {
		return fmt.Errorf("%s", violations[0])
	}
	return nil
}

// TestSchemaAccepts checks that the schema of policies accepts files that parseFile accepts; FuzzLoad checks
// this for others.
func TestSchemaAccepts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := parseFile(file, data); len(problems) > 0 {
			t.Errorf("%s: %v", file, problems)
		}
		if err := checkSchema(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"[operator]\nallow_no = true": `/operator/allow_no: expected one of "allow_yes"`,
		"[operator]\naudit = true":    `/operator/audit: expected one of "on", "required", "off", got boolean true`,
		"[plugin.p.limits]\nmemory_mib = 5000": "/plugin/p/limits/memory_mib: " +
			"expected integer >= 1 and <= 4096, got number 5000",
		"[plugin.\"a/b\"]":                                "/plugin/a~1b: expected a property whose name is",
		"[plugin.p]\ndigest = \"sha256:abc\"":             "/plugin/p/digest: expected string matching",
		"[callers.cli]\nallow = [\"*\", 3]":               "/callers/cli/allow/1: expected string, got number 3",
		"[secrets.X]":                                     "/secrets/X/from: expected string",
		"[secrets.X]\nfrom = \"vault:x\"":                 "/secrets/X/from: expected string matching",
		"[plugin.p.settings]\nx = nan":                    "cannot be encoded as JSON",
		"[plugin.p]\nsettings = {a = 1979-05-27}\nx = {}": `/plugin/p/x: expected one of "digest"`,
	} {
		if err := checkSchema([]byte(text)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, reason)
		}
		if _, problems := parseFile("f.toml", []byte(text)); len(problems) == 0 {
			t.Errorf("%s\nparseFile accepts it", text)
		}
	}
}
