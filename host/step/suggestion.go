package step

import (
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Suggestion is how to fix one violation, as data.
type Suggestion struct {
	Pointer string // JSON pointer to the value
	Op      SuggestionOp
	Value   string // depends on Op
}

// SuggestionOp is the kind of a [Suggestion].
type SuggestionOp string

// The kinds of suggestions.
const (
	SuggestRename SuggestionOp = "rename" // Value: the name that the schema has
	SuggestRemove SuggestionOp = "remove" // the schema has no such property
	SuggestAdd    SuggestionOp = "add"    // the property is required
	SuggestChoose SuggestionOp = "choose" // Value: the nearest values or names, separated by commas
	SuggestSyntax SuggestionOp = "syntax" // Value: position of the JSON syntax error
	SuggestText   SuggestionOp = "text"   // Value: advice of the tool itself
)

// String returns the suggestion as text; "" for nil.
func (s *Suggestion) String() string {
	if s == nil {
		return ""
	}
	name := manifest.CleanLine(jsontext.LastName(s.Pointer))
	switch s.Op {
	case SuggestRename:
		return "rename " + name + " to " + s.Value
	case SuggestRemove:
		return "remove " + name
	case SuggestAdd:
		return "add " + name
	case SuggestChoose:
		return "did you mean " + s.Value + "?"
	case SuggestSyntax:
		return "fix " + s.Value
	}
	return s.Value
}

// MarshalText encodes the suggestion as its text.
func (s *Suggestion) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText decodes any text as a suggestion of the kind [SuggestText].
func (s *Suggestion) UnmarshalText(text []byte) error {
	*s = Suggestion{Op: SuggestText, Value: string(text)}
	return nil
}

// TextSuggestion returns the advice of a tool as a suggestion; nil for "".
func TextSuggestion(text string) *Suggestion {
	if text == "" {
		return nil
	}
	return &Suggestion{Op: SuggestText, Value: text}
}
