package host

import "github.com/parley-tools/parley/manifest"

// Docs is the documentation of one tool as `--describe` prints it and errors carry it.
type Docs = manifest.Description
