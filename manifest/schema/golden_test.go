package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// The files in testdata/kaptinlin have verdicts of another validator, kaptinlin/jsonschema v0.9.8, which was linked
// here until the walker replaced it. It read each schema as written. Its README describes the two files.

func readGolden(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/kaptinlin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// knownMisses are the files of the suite for which kaptinlin/jsonschema returned wrong verdicts. All of them have
// schemas that the gate refuses, so there is no verdict of the walker to compare.
var knownMisses = map[string]string{
	"draft7/definitions.json":      "a reference to the metaschema",
	"draft7/ref.json":              "a reference to the metaschema",
	"draft7/refRemote.json":        "references to other documents",
	"draft2020-12/defs.json":       "a reference to the metaschema",
	"draft2020-12/dynamicRef.json": "$dynamicRef",
	"draft2020-12/ref.json":        "a reference to the metaschema",
	"draft2020-12/refRemote.json":  "references to other documents",
}

// TestSuiteVerdicts compares the walker's verdicts on the official suite with those of kaptinlin/jsonschema.
func TestSuiteVerdicts(t *testing.T) {
	verdicts := map[string]string{}
	for _, line := range readGolden(t, "suite.txt") {
		group, verdict, _ := strings.Cut(line, " = ")
		verdicts[group] = verdict
	}
	compared, missed := 0, map[string]bool{}
	for _, tt := range suites[1:] {
		for _, g := range suiteGroups(t, tt.dir, tt.dialect) {
			verdict, recorded := verdicts[g.file+" "+g.key]
			if !recorded {
				continue // the suite has changed since
			}
			s, refused := tt.compile(jsontext.Marshal(g.schema))
			for i, test := range g.Tests {
				if verdict == "refused" || (verdict[i] == '1') != test.Valid {
					missed[g.file] = true
					if knownMisses[g.file] == "" || refused == nil {
						t.Errorf("%s: %s: %s: the recorded verdict is wrong, and the gate says %v",
							g.file, g.Description, test.Description, refused)
					}
				}
				if refused != nil {
					continue
				}
				compared++
				vs, err := s.Validate(decode(t, string(test.Data)))
				if err != nil || (len(vs) == 0) != (verdict[i] == '1') {
					t.Errorf("%s: %s: %s: got %v %v, recorded %c", g.file, g.Description, test.Description, vs, err, verdict[i])
				}
			}
		}
	}
	for file, why := range knownMisses {
		if !missed[file] {
			t.Errorf("no recorded verdict of %s (%s) is wrong: remove it from knownMisses", file, why)
		}
	}
	if compared < 1700 {
		t.Errorf("%d values compared, at least 1700 expected: the suite has changed", compared)
	}
	t.Logf("%d values compared", compared)
}

// TestRandomVerdicts compares the walker's verdicts on 10,000 generated values with those of kaptinlin/jsonschema.
func TestRandomVerdicts(t *testing.T) {
	lines := readGolden(t, "random.txt")
	digest := sha256.New()
	for seed, verdict := range strings.Fields(strings.Join(lines[1:], " ")) {
		schema, values := randomModern(uint64(seed))
		fmt.Fprintf(digest, "%s\n%s\n", schema, strings.Join(values, "\n"))
		s, err := CompileUntrusted([]byte(schema))
		if err != nil {
			if verdict != "-" {
				t.Errorf("seed %d: is refused, and was accepted: %v\n%s", seed, err, schema)
			}
			continue
		}
		for i, text := range values {
			vs, err := s.Validate(decode(t, text))
			if err != nil || (len(vs) == 0) != (verdict[i] == '1') {
				t.Errorf("seed %d\nschema %s\nvalue %s\ngot %v %v, the recorded verdict is %c",
					seed, schema, text, vs, err, verdict[i])
			}
		}
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != lines[0] {
		t.Errorf("the generator makes other schemas or values than those of the recorded verdicts: %s", got)
	}
}

// randomModern makes a schema of 2020-12 and five values.
func randomModern(seed uint64) (schema string, values []string) {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 2020)), modern: true}
	doc := map[string]any{"$defs": map[string]any{"d": g.schema(2)}}
	for k, v := range g.object(3) {
		doc[k] = v
	}
	for range 5 {
		values = append(values, string(jsontext.Marshal(g.value(3))))
	}
	return string(jsontext.Marshal(doc)), values
}
