package index

// Doc is one thing that can be found: a tool, an event or a type of a plugin.
type Doc struct {
	Name                     string // local to the plugin: "Network.getCookies"
	Kind                     string // "tool" (also when empty), "event" or "type"
	Group, Category, Effect  string
	Brief, Signature         string
	Deprecated, Experimental bool
	Text                     string   // standard and full documentation
	Aliases                  []string // other names
	Keywords                 []string
	Tasks                    []string // phrases that a user would say: "take a picture of the page"
	Phrases                  []string // such phrases that are not the author's; they count less
	Params                   []Param
}

// Plugin is what describes all tools of a plugin.
type Plugin struct {
	Name     string
	Text     string // its own documentation
	Keywords []string
}

// Param is a parameter of a tool, or a field of an event or a type.
type Param struct {
	Name, Text string
	Enum       []string
}

// Query is a query with filters. Empty filters match everything.
type Query struct {
	Text     string
	Group    string // "Network" or "cdp.Network", in any case
	Effect   string
	Category string
	Kind     string // "tool" when empty
	Limit    int    // number of hits; 0: 10, negative: all
	Explain  bool   // fill Hit.Parts and Results.Signals
	// Place returns the rank of a plugin's hits among hits that match equally well; the lowest comes first. Nil means
	// that they have no order.
	Place func(plugin string) int
	// Near is the largest difference between the scores of hits that match equally well.
	Near float64
}

// Results are the results of a search, best first. The order is deterministic: equal scores are sorted by
// Query.Place, then by name.
type Results struct {
	Total int // number of matching documents, regardless of the limit
	Hits  []Hit
	Weak  bool // no document matches well; there may be poor hits, or none
	// Foreign reports that the query is probably not in English, the language that search reads.
	Foreign bool
	// Signals are the values that decide Weak. They are set with Query.Explain.
	Signals []float64
	Groups  []string // if weak, up to three nearest groups: "cdp.Network", or "cdp" for a plugin without groups
}

// Hit is a matching document.
type Hit struct {
	Plugin, Name, Kind       string
	Brief, Signature         string
	Group, Effect, Category  string
	Deprecated, Experimental bool
	Score                    float64 // share of the best possible score, 0 to 1, four digits
	Why                      string  // the strongest evidence: `name`, `task "take a picture"`, `typo cokies≈cookies`
	Confidence               string  // "high", "medium" or "low"
	Parts                    []Part  // the parts of the score, with Query.Explain
}

// Part is one piece of evidence in a score: a word of the query, or an adjustment.
type Part struct {
	Word  string `json:"word,omitempty"`  // word of the query; empty for evidence about the whole query
	Match string `json:"match,omitempty"` // what it matched: a word of the index, a phrase, a name
	// "word", "synonym", "typo", "prefix", "joined", "name part", "identifier", "phrase", "deprecated", ..
	How   string  `json:"how"`
	Field string  `json:"field,omitempty"` // the strongest matching field: "name", "group", "alias", ..
	Score float64 `json:"score"`           // what it adds to the score; adjustments may be negative
}
