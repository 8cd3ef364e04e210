package ranked

import (
	"slices"
	"testing"

	"github.com/parley-tools/parley/host/segment"
)

// TestBM25F checks that names count more than descriptions and these more than parameters, that rare words count more
// than frequent ones, and that words are split and stemmed.
func TestBM25F(t *testing.T) {
	tool := func(name, text string, params ...segment.Param) segment.Doc {
		return segment.Doc{Name: name, Brief: text, Params: params}
	}
	b := NewBM25F([]Plugin{{About: segment.Plugin{Name: "p"}, Docs: []segment.Doc{
		tool("listBranches", "Show what is there"),
		tool("merge", "Join a branch with another one"),
		tool("tag", "Mark a state", segment.Param{Name: "branch", Text: "Where the state is"}),
		tool("show", "Print a file of a state"),
		{Name: "branch.changed", Kind: "event", Brief: "A branch has changed"},
	}}})
	for query, want := range map[string][]string{
		"branch":              {"p.listBranches", "p.merge", "p.tag"},
		"what is the":         nil,
		"joining":             {"p.merge"},
		"state files":         {"p.show", "p.tag"},
		"LISTING of branches": {"p.listBranches", "p.merge", "p.tag"},
	} {
		if got := b.Rank(query); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}
