package stats

import (
	"encoding/json"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// shapeOf matches what a trace without values has in the place of a value.
var shapeOf = lazy.Pattern(`^(null|boolean|integer|number|(string|enum)\(.*\)|object\{.*\}|array\[\d+\].*)$`)

// AreShapes reports whether the parameters of a record are the shapes of values, and not values.
func AreShapes(params json.RawMessage) bool {
	var given map[string]any
	if json.Unmarshal(params, &given) != nil || len(given) == 0 {
		return false
	}
	for _, v := range given {
		if text, ok := v.(string); !ok || !shapeOf().MatchString(text) {
			return false
		}
	}
	return true
}

// Valid reports whether parameters are valid by a schema. Without a schema it returns false.
func Valid(s *schema.Schema, params json.RawMessage) bool {
	value, err := jsontext.Decode(params, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil || s == nil {
		return false
	}
	violations, err := s.Validate(value)
	return err == nil && len(violations) == 0
}

// Followed is a search that a successful call of a tool followed.
type Followed struct {
	Query string
	Tool  string // qualified
}

// FollowedSearches returns the searches of records, as far as these have queries, that a successful call followed
// within searchReach calls.
func FollowedSearches(records []host.Record) (found []Followed) {
	type state struct {
		query string
		calls int
	}
	open := map[string]*state{}
	for i := range records {
		r := &records[i]
		switch w := open[r.Session]; {
		case r.Session == "":
		case r.Op == "search":
			open[r.Session] = &state{query: r.Query}
		case r.Op == "" && w != nil:
			if w.calls++; r.ExitCode == 0 {
				if w.query != "" && w.calls <= searchReach {
					found = append(found, Followed{w.query, r.Tool})
				}
				delete(open, r.Session)
			}
		}
	}
	return found
}
