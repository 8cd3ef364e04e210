package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// A Schema is a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	doc       any
	root      *node
	untrusted bool
	uneval    bool
}

// CompileTrusted compiles a schema that this project wrote or generated, in draft-07. References must be local. The
// error is a *[jsontext.SyntaxError] for text that is not JSON, otherwise a *[GateError].
func CompileTrusted(raw []byte) (*Schema, error) {
	doc, err := jsontext.Decode(raw, jsontext.Limits{Bytes: 16 << 20})
	if err != nil {
		return nil, err
	}
	return compileDocument(doc, false)
}

// CompileUntrusted compiles a schema that came with a plugin: 2020-12 unless its "$schema" names draft-07. The error
// is a *[GateError] for a schema that cannot be applied faithfully, safely and in bounded time, and a
// *[jsontext.SyntaxError] for text that is not JSON.
func CompileUntrusted(raw []byte) (*Schema, error) {
	doc, err := jsontext.Decode(raw, jsontext.Limits{Bytes: gateBytes, Depth: gateDepth, Values: gateNodes})
	if syn, ok := errors.AsType[*jsontext.SyntaxError](err); ok && syn.IsLimit {
		return nil, refuse("", "%s", syn.Msg)
	}
	if err != nil {
		return nil, err
	}
	return compileDocument(doc, true)
}

func compileDocument(doc any, untrusted bool) (*Schema, error) {
	c := &compiler{doc: doc, untrusted: untrusted}
	root, err := c.compile()
	if err != nil {
		return nil, err
	}
	return &Schema{doc: doc, root: root, untrusted: untrusted, uneval: c.uneval}, nil
}

// Root returns the decoded document of the schema. The caller must not change it.
func (s *Schema) Root() any { return s.doc }

// A Violation is one reason why a value is invalid.
type Violation struct {
	// Pointer is a JSON pointer into the value. For a missing or unknown property it is the property's pointer.
	Pointer string
	// Keyword is the broken keyword in the spelling of 2020-12, or "false" for a schema that allows nothing.
	Keyword    string
	Provided   string   // what was given, with its type: `number 3`, `string "abc"`, `array[2]`, `nothing`
	Expected   string   // what was expected, in words
	DidYouMean []string // the nearest known names or values, at most 3
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: expected %s, got %s", cmp.Or(v.Pointer, "the value"), v.Expected, v.Provided)
}

// CostError says that validating a value would take more than Budget steps, because of the schema, the value or both.
type CostError struct{ Budget int }

func (e *CostError) Error() string {
	return fmt.Sprintf("validating this value would take more than %d steps: give a smaller or less deeply nested value",
		e.Budget)
}

// MaxViolations bounds the violations of one value that Validate returns. It returns the first ones that the walker
// finds.
const MaxViolations = 1000

// Validate returns the violations of v, sorted by pointer, then by keyword; none means that v is valid. v is a value
// from [jsontext.Decode] or another value that encoding/json can encode. The error is a *[CostError] if validation
// would cost too much, which can happen only for schemas from [CompileUntrusted]. Otherwise it says that v cannot be
// encoded.
func (s *Schema) Validate(v any) ([]Violation, error) {
	v, err := jsontext.Normalize(v)
	if err != nil {
		return nil, err
	}
	return s.validate(v)
}

// validate is Validate for a value from [jsontext.Decode].
func (s *Schema) validate(v any) ([]Violation, error) {
	if s.untrusted {
		if err := checkCost(s.root, v); err != nil {
			return nil, err
		}
	}
	w := &walker{uneval: s.uneval, steps: 1 << 40}
	var faults []fault
	w.check(s.root, v, nil, &faults, nil)
	if len(faults) == 0 {
		return nil, nil
	}
	return s.violations(faults), nil
}

func (s *Schema) violations(faults []fault) []Violation {
	faults = faults[:min(len(faults), MaxViolations)]
	list := lists.Map(faults, s.explain)
	slices.SortStableFunc(list, compareViolations)
	return slices.CompactFunc(list, func(a, b Violation) bool { return compareViolations(a, b) == 0 })
}

func compareViolations(a, b Violation) int {
	return cmp.Or(comparePointers(a.Pointer, b.Pointer), strings.Compare(a.Keyword, b.Keyword),
		strings.Compare(a.Expected, b.Expected))
}

// comparePointers compares token by token: indices by number and before names, names by text.
func comparePointers(a, b string) int {
	x, _ := jsontext.SplitPointer(a)
	y, _ := jsontext.SplitPointer(b)
	return slices.CompareFunc(x, y, func(s, t string) int {
		i, noIndex := strconv.Atoi(s)
		j, noOther := strconv.Atoi(t)
		switch {
		case noIndex == nil && noOther == nil:
			return cmp.Or(i-j, strings.Compare(s, t))
		case noIndex == nil:
			return -1
		case noOther == nil:
			return 1
		}
		return strings.Compare(s, t)
	})
}
