package verb

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/keeper/mux/muxtest"
)

// TestDocumentNumbers checks that numbers differ, also modulo the cycle within a cycle, and are not foreseeable.
func TestDocumentNumbers(t *testing.T) {
	n, all, cycle := newDocumentNumbers(), map[int64]bool{}, map[int64]bool{}
	first := n.next()
	all[first], cycle[first%documentCycle] = true, true
	for range 2*documentCycle - 1 {
		next := n.next()
		all[next] = true
		if cycle[next%documentCycle] = true; next < 1 || len(all) == documentCycle &&
			len(cycle) != documentCycle {
			t.Fatalf("%d: %d numbers have %d words", next, len(all), len(cycle))
		}
	}
	if len(all) != 2*documentCycle {
		t.Errorf("%d numbers are different", len(all))
	}
	firsts := map[int64]bool{}
	for range 20 {
		n := newDocumentNumbers()
		firsts[n.next()] = true
	}
	if len(firsts) < 15 {
		t.Errorf("20 browsers begin with %d numbers", len(firsts))
	}
}

// TestObjectsOfScriptsAreReleased checks that the page may free what a script has returned, once its files are set or
// its closed shadow roots are adopted.
func TestObjectsOfScriptsAreReleased(t *testing.T) {
	for _, answers := range [][]string{{"DOM.setFileInputFiles"},
		{"Runtime.getProperties", "Runtime.releaseObjectGroup"}} {
		withPage(t, func(t *testing.T, e *Verbs, f *muxtest.Browser) {
			page, err := e.Owners.Resolve(api.CommandLine, "")
			if err != nil {
				t.Fatal(err)
			}
			script := api.PageScript{Plugin: "p", Name: "s", SHA256: strings.Repeat("a", 64)}
			f.Report("S", "Runtime.executionContextCreated", map[string]any{"context": map[string]any{"id": 7,
				"name": script.World(), "uniqueId": "u7", "auxData": map[string]any{"frameId": "T"}}})
			synctest.Wait()
			if answers[0] == "DOM.setFileInputFiles" {
				go e.GiveFiles(t.Context(), api.CommandLine, page, nil)("1")
			} else {
				go e.adoptRoots(t.Context(), page, "T", script, "1")
			}
			for _, method := range answers {
				q := <-f.Sent
				if q.Method != method {
					t.Errorf("the browser receives %s, want %s", q.Method, method)
				}
				f.Answer(q, `{}`)
			}
		})
	}
}
