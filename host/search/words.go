package search

import (
	"encoding/json"

	"github.com/parley-tools/parley/host/internal/index"
)

// Query is a query with filters. An empty filter matches everything.
type Query struct {
	Text, Plugin, Group, Effect, Category string

	Kind    string // tool (default), event or type
	Limit   int    // 0: 10
	Explain bool
}

// Part is one contribution to a score.
type Part = index.Part

// Data is the result of a search.
type Data struct {
	Query         string   `json:"query"`
	Total         int      `json:"total"`
	Results       []Result `json:"results"`
	NearestGroups []string `json:"nearest_groups,omitempty"`

	Signals        []float64 `json:"-"` // with Explain: what decides whether to warn that nothing matches well
	Foreign, Whole bool      `json:"-"` // the query is probably not in English; Query is the whole query
}

// Result is one hit.
type Result struct {
	Name         string    `json:"name"` // qualified
	Brief        string    `json:"brief"`
	Why          string    `json:"why"`
	Score        float64   `json:"score"`
	Confidence   string    `json:"confidence"`
	Signature    string    `json:"signature,omitempty"`
	Template     *Template `json:"template,omitempty"` // set for the first three results
	Effect       string    `json:"effect,omitempty"`
	Kind         string    `json:"kind,omitempty"` // "event" or "type"
	Deprecated   bool      `json:"deprecated,omitempty"`
	Experimental bool      `json:"experimental,omitempty"`
	Unsigned     bool      `json:"unsigned,omitempty"` // its plugin is neither shipped nor signed with a trusted key
	Parts        []Part    `json:"parts,omitempty"`
	// Typed is the qualified name and signature as texts show it, with the values of enums and the type of the result.
	Typed string `json:"-"`
}

// Template is a call of a tool to fill in: Params has a hole, "<name: type, what it is>", for each parameter that is
// required, or for the positional ones if none is. Texts also show Others, which names other parameters with their
// types: "timeout: integer, format: \"png\"|\"webp\"".
type Template struct {
	Tool   string          `json:"tool"` // qualified
	Params json.RawMessage `json:"params"`
	Others string          `json:"-"`
}

// String returns the template as texts show it.
func (t *Template) String() string {
	if t.Others == "" {
		return string(t.Params)
	}
	return string(t.Params) + "  or also " + t.Others
}
