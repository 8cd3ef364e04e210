// Package document validates the documents that Parley itself defines, such as plugin manifests and policies, by their
// JSON Schemas.
//
// Two independent implementations must agree that a document is valid: the walker of [schema], which says in words
// what is wrong, and gojsonschema. A mistake in one of them then leads to a refused document, not to an accepted one.
// Compiling a schema with both takes about a millisecond, so it is done when installing and writing, not at each
// start.
package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xeipuuv/gojsonschema"

	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// A Schema is a compiled schema of a document. It is immutable and safe for concurrent use.
type Schema struct {
	walker *schema.Schema
	second *gojsonschema.Schema
}

// Compile compiles a schema that this project wrote, in draft-07. References must be local: nothing is ever fetched.
// Errors are as for [schema.CompileTrusted], or come from gojsonschema.
func Compile(raw []byte) (*Schema, error) {
	walker, err := schema.CompileTrusted(raw) // it also refuses schemas that overflow gojsonschema's stack
	if err != nil {
		return nil, err
	}
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect = false
	loader.Draft = gojsonschema.Draft7
	second, err := loader.Compile(gojsonschema.NewRawLoader(walker.Root()))
	if err != nil {
		return nil, fmt.Errorf("gojsonschema: %w", err)
	}
	return &Schema{walker: walker, second: second}, nil
}

// Validate returns the violations of a value that encoding/json can encode, as [schema.Schema.Validate] does; none
// means that the document is valid. It returns an error if the value cannot be encoded, or if only gojsonschema
// refuses it.
func (s *Schema) Validate(doc any) ([]schema.Violation, error) {
	doc, err := jsontext.Normalize(doc)
	if err != nil {
		return nil, err
	}
	violations, err := s.walker.Validate(doc)
	if err != nil || len(violations) > 0 {
		return violations, err
	}
	result, err := s.second.Validate(gojsonschema.NewRawLoader(doc))
	if err != nil {
		return nil, fmt.Errorf("gojsonschema: %w", err)
	}
	if result.Valid() {
		return nil, nil
	}
	texts := lists.Map(result.Errors(), gojsonschema.ResultError.String)
	slices.Sort(texts) // gojsonschema walks maps in random order
	return nil, errors.New("gojsonschema: " + strings.Join(texts, "; "))
}
