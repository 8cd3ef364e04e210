package host

import "github.com/parley-tools/parley/manifest"

// Docs is the documentation of one tool, event or type at a tier, with the steps to take next.
type Docs struct {
	*manifest.ToolDocs
	Next []Step `json:"-"`
}
