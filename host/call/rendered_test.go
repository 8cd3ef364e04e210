package call_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/internal/schemafacts"
)

// TestErrorsShowTypes checks that the error of a call without parameters shows or counts each field and value of what
// is missing, in its details and in the holes of its template, and that a plan does.
func TestErrorsShowTypes(t *testing.T) {
	for seed := range uint64(100) {
		schema := schemafacts.Random(rand.New(rand.NewPCG(seed, 3)))
		h := newHost(t, call.Config{}, newFake(t, fmt.Sprintf(`{"manifest":1,"name":"rig","version":"1.0.0","kind":"parley/1",
			"docs":{"brief":"Test"},"tools":[{"name":"tool","docs":{"brief":"Test"},"effect":"read","params":%s}]}`, schema), nil))
		e := advice.CheckCall(h.Names(), host.Call{Name: "rig.tool"})
		if e == nil { // nothing is required
			continue
		}
		plan, err := advice.PlanOf(t.Context(), h.Catalog(), advice.PlanQuery{Tool: "rig.tool", Principal: cli})
		if err != nil {
			t.Fatal(err)
		}
		facts := schemafacts.Of(schema, 3)
		for _, d := range e.Details {
			for _, f := range facts {
				if f.Kind == "description" || !strings.HasPrefix(f.Path, d.Parameter[1:]+".") &&
					!strings.HasPrefix(f.Path, d.Parameter[1:]+"[") {
					continue
				}
				if !strings.Contains(d.Expected, strings.Trim(f.Value, `"`)) && !strings.Contains(d.Expected, " more") {
					t.Errorf("seed %d: expected %q says nothing of %s %s\n%s", seed, d.Expected, f.Kind, f.Path, schema)
				}
			}
			name := d.Parameter[1:]
			for _, text := range []string{string(e.Template), string(plan.Calls[0].Params)} {
				if !strings.Contains(text, `"`+name+`":`) {
					t.Errorf("seed %d: a template without %s: %s", seed, name, text)
				}
			}
		}
		for _, hole := range plan.Holes {
			if strings.Contains(hole, "object,") || strings.HasSuffix(hole, "object>") || strings.Contains(hole, "of object") {
				t.Errorf("seed %d: a hole without its fields: %s", seed, hole)
			}
		}
	}
}
