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
	Tasks                    []string // phrases that somebody would say: "take a picture of the page"
	Params                   []Param
}

// Param is a parameter of a tool, or a field of an event or a type.
type Param struct {
	Name, Text string
	Enum       []string
}

// Query says what to look for. Empty filters let everything pass.
type Query struct {
	Text     string
	Group    string // "Network" or "cdp.Network", in any case
	Effect   string
	Category string
	Kind     string // "tool" when empty
	Limit    int    // hits wanted; 0 means 10, negative all
	Explain  bool   // fill Hit.Parts
}

// Results is what a search found, best first. The order is the same on every run: equal scores go by name.
type Results struct {
	Total  int // documents that fit at all, whatever the limit
	Hits   []Hit
	Weak   bool     // nothing fits well: the hits are the best of a bad lot, or none
	Groups []string // when weak, up to three groups that come nearest: "cdp.Network", or "cdp" for one without groups
}

// Hit is a document that fits.
type Hit struct {
	Plugin, Name, Kind       string
	Brief, Signature         string
	Group, Effect, Category  string
	Deprecated, Experimental bool
	Score                    float64 // share of the best that any document could reach, 0 to 1, four digits
	Why                      string  // the strongest evidence: `name`, `task "take a picture"`, `typo cokies≈cookies`
	Confidence               string  // "high", "medium" or "low"
	Parts                    []Part  // how the score came about, with Query.Explain
}

// Part is one piece of evidence in a score: a word of the query, or an adjustment.
type Part struct {
	Word  string  `json:"word,omitempty"`  // of the query; empty for evidence that concerns all of it
	Match string  `json:"match,omitempty"` // what it met: a word of the index, a phrase, a name
	How   string  `json:"how"`             // "word", "synonym", "typo", "prefix", "joined", "name part", "identifier", "phrase", "deprecated", ..
	Field string  `json:"field,omitempty"` // the best field it stands in: "name", "group", "alias", ..
	Score float64 `json:"score"`           // what it adds to the score; adjustments may be negative
}
