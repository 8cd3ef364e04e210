package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	hostcall "github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/wasmtest"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
)

// schemaRules build schemas that are too large to be read here. Each takes a number and returns the schema of "p"
// and its definitions.
var schemaRules = map[string]func(n int) (p, defs string){
	// Each level applies the next one twice.
	"chain":    func(n int) (string, string) { return levels(n, `{"allOf":[%[1]s,%[1]s]}`) },
	"anychain": func(n int) (string, string) { return levels(n, `{"anyOf":[%[1]s,%[1]s]}`) },
	"notchain": func(n int) (string, string) { return levels(n, `{"not":%[1]s}`) },
	// Each level of the value is validated by the next level twice.
	"pairs": func(n int) (string, string) {
		return levels(n, `{"anyOf":[{"items":%[1]s},{"items":%[1]s}]}`)
	},
	"ring": func(n int) (string, string) {
		_, defs := levels(n, `%s`)
		return `{"$ref":"#/$defs/l0"}`, strings.Replace(defs, `"l`+strconv.Itoa(n)+`":true`, `"l`+strconv.Itoa(n)+
			`":{"$ref":"#/$defs/l0"}`, 1)
	},
	"refs": func(n int) (string, string) { // n targets
		var p, defs []string
		for i := range n {
			p, defs = append(p, fmt.Sprintf(`{"$ref":"#/$defs/r%d"}`, i)), append(defs, fmt.Sprintf(`"r%d":true`, i))
		}
		return `{"anyOf":[` + strings.Join(p, ",") + `]}`, "{" + strings.Join(defs, ",") + "}"
	},
	"defaults": func(n int) (string, string) { // each contains the next twice
		var defs []string
		for i := range n {
			defs = append(defs,
				fmt.Sprintf(`"l%[1]d":{"type":"object","default":{},"properties":{"a":{"$ref":"#/$defs/l%[2]d"},"b":{"$ref":"#/$defs/l%[2]d"}}}`, i, i+1))
		}
		return `{"$ref":"#/$defs/l0"}`, "{" + strings.Join(append(defs, fmt.Sprintf(`"l%d":{"default":1}`, n)), ",") + "}"
	},
	"patterns": func(n int) (string, string) {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"(a|b|c|d){%d}":true`, 100+i))
		}
		return `{"patternProperties":{` + strings.Join(all, ",") + `}}`, "{}"
	},
	"properties": func(n int) (string, string) {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%d":true`, i))
		}
		return `{"properties":{` + strings.Join(all, ",") + `}}`, "{}"
	},
	"nested-not":   func(n int) (string, string) { return nestedJSON(n, `{"not":`) },
	"nested-items": func(n int) (string, string) { return nestedJSON(n, `{"items":`) },
}

// levels returns definitions l0 to ln. Each applies form to a reference to the next; the last one accepts
// everything.
func levels(n int, form string) (p, defs string) {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"l%d":`, i)+fmt.Sprintf(form, fmt.Sprintf(`{"$ref":"#/$defs/l%d"}`, i+1)))
	}
	return `{"$ref":"#/$defs/l0"}`, "{" + strings.Join(append(all, fmt.Sprintf(`"l%d":true`, n)), ",") + "}"
}

func nestedJSON(n int, open string) (p, defs string) {
	return strings.Repeat(open, n) + "true" + strings.Repeat("}", n), "{}"
}

// hostileParams returns the parameters of a tool whose "p" has the schema of a line: a rule, or JSON followed by a
// comma and definitions.
func hostileParams(t testing.TB, source string) string {
	t.Helper()
	var p, defs string
	if name, rest, ok := strings.Cut(source, "("); ok && schemaRules[name] != nil {
		n, err := strconv.Atoi(strings.TrimSuffix(rest, ")"))
		if err != nil {
			t.Fatal(err)
		}
		p, defs = schemaRules[name](n)
	} else {
		p, defs, ok = strings.Cut(source, "}, {")
		if defs = "{" + defs; ok {
			p += "}"
		} else {
			defs = "{}"
		}
		p, defs = wasmtest.Repeat(t, p), wasmtest.Repeat(t, defs)
	}
	return `{"type":"object","properties":{"p":` + p + `},"$defs":` + defs + `}`
}

// TestHostileSchemas installs plugins with hostile schemas for parameters or results, and calls those that are
// accepted through the whole path of a call. Meanwhile a well-behaved plugin keeps returning. PARLEY_HAMMER=1 uses
// all schemas instead of a sample.
func TestHostileSchemas(t *testing.T) {
	skipWithRace(t)
	e := testEngine(t)
	c := startCanary(t, e)
	defer c.stop()
	lines := sample(wasmtest.Lines(t, "schemas.txt"), 16,
		func(l wasmtest.Line) string { return l.Section + " " + l.Fields[2] })
	for _, l := range lines {
		schema, value, end, says := l.Fields[0], l.Fields[1], l.Fields[2], l.Fields[3]
		t.Run(fmt.Sprintf("%s:%d:%.40s", l.Section, l.Number, schema), func(t *testing.T) {
			_, answered := c.since(0)
			start := time.Now()
			params, returns := hostileParams(t, schema), `true`
			value = fmt.Sprintf(`{"p":%s}`, wasmtest.Repeat(t, value))
			given, result := value, `1`
			if l.Section == "results" {
				params, returns, given, result = `{"type":"object"}`, params, `{}`, value
			}
			gotEnd, message := installAndCall(t, e, params, returns, given, result)
			if elapsed := time.Since(start); elapsed > schemaLimit*busyFactor {
				t.Errorf("it took %v", elapsed)
			}
			if gotEnd != end || !strings.Contains(message, says) {
				t.Errorf("ended in %s %.400q, want %s and %q", gotEnd, message, end, says)
			}
			answers, _ := c.since(answered)
			if worst := slices.Max(append(answers, 0)); worst > busyFactor*canaryLimit {
				t.Errorf("meanwhile another plugin returned after %v", worst)
			}
		})
	}
}

// schemaLimit is the promised limit for installing a plugin and validating one value by its schema.
const schemaLimit = 3 * time.Second

// installAndCall reads a plugin with these schemas as an install does, and calls it as any caller does. The guest
// always returns the same.
func installAndCall(t *testing.T, e *Engine, params, returns, given, result string) (end, message string) {
	t.Helper()
	doc := `{"manifest":1,"name":"schemas","version":"1.0.0","kind":"parley/1","docs":{"brief":"A test"},"limits":{"output_bytes":8000000},
		"tools":[{"name":"call","docs":{"brief":"Call it"},"effect":"read","params":` + params + `,"returns":` + returns + `}]}`
	wasm, err := sections.WriteManifest(
		wasmtest.Responding([]byte(`{"ok":true,"result":`+result+`}`), len(given)+1<<10),
		[]byte(doc))
	path := filepath.Join(t.TempDir(), "schemas.wasm")
	if err == nil {
		err = os.WriteFile(path, wasm, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.ReadCandidate(path, "0.1.0")
	if err != nil {
		return errorOutcome(t, host.AsError(err))
	}
	catalog, err := host.NewCatalog(e.Provider(c.Source()))
	if err != nil {
		t.Fatal(err)
	}
	h, err := hostcall.New(hostcall.Config{Catalog: catalog, Policy: allowAll{}})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := h.Call(context.Background(), host.Call{Name: "schemas.call", Params: json.RawMessage(given),
		Principal: caller.Principal{Name: "cli"}})
	for _, w := range a.Warnings {
		wasmtest.CheckDisplayed(t, "a warning", w)
	}
	if a.Err != nil {
		return errorOutcome(t, a.Err)
	}
	return "ok", string(a.Data)
}

func errorOutcome(t *testing.T, e *host.Error) (end, message string) {
	t.Helper()
	wasmtest.CheckDisplayed(t, "the message", e.Message)
	text, err := manifest.Marshal(e.Object())
	if err != nil {
		t.Fatal(err)
	}
	wasmtest.CheckDisplayed(t, "the error", string(manifest.EscapeJSON(text)))
	return string(e.Code), e.Message + string(text)
}

// allowAll is a policy that allows every call and grants nothing.
type allowAll struct{}

func (allowAll) Decide(context.Context, host.Ask) (host.Decision, error) {
	return host.Decision{Verdict: host.Allow}, nil
}
