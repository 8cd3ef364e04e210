package policy

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/pelletier/go-toml/v2"

	format "github.com/parley-tools/parley/manifest/document"
)

//go:embed schema.json
var schemaJSON []byte

var fileSchema = sync.OnceValues(func() (*format.Schema, error) { return format.Compile(schemaJSON) })

// checkSchema validates a policy file by the schema of policies. It repeats what parseFile checks, by other code and
// without positions, and takes milliseconds: it is for files that are about to be written, not for each start.
func checkSchema(data []byte) error {
	s, err := fileSchema()
	if err != nil {
		return err
	}
	doc := map[string]any{}
	if err := toml.Unmarshal(data, &doc); err != nil {
		return err
	}
	violations, err := s.Validate(doc)
	if err != nil {
		return err
	}
	if len(violations) > 0 {
		return fmt.Errorf("%s", violations[0])
	}
	return nil
}
