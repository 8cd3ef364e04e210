package cdp

import (
	"os"
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestSearch holds search over the protocol to what it reached on the development set: queries from the authors' heads, written
// before the phrases. Half a was tuned on; half b was only looked at in sum.
func TestSearch(t *testing.T) {
	f, err := os.Open("../testdata/search/cdp.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set, err := host.ReadEval(f)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := host.NewCatalog(New(Config{}))
	if err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Config{})
	h.Swap(catalog)
	r := host.Evaluate(set, h)
	if len(r.Unknown) > 0 {
		t.Errorf("the set names what does not exist: %v", r.Unknown)
	}
	for _, s := range r.Scores {
		t.Logf("%1s %-8s %3d queries: success@1 %.3f, success@5 %.3f, MRR %.3f, NDCG@10 %.3f", s.Half, s.Kind, s.Queries, s.Success1, s.Success5, s.MRR, s.NDCG10)
	}
}
