package policy

import (
	"slices"

	"github.com/parley-tools/parley/manifest"
)

// AskedBy tells whether a manifest asks for what a grant gives: for something of its name and for its whole mode, all its
// methods and the reading of its secret. More than what is asked has no effect, and is most likely meant for another plugin.
func (g Grant) AskedBy(caps manifest.Capabilities) bool {
	alone := entry{made: &plugin{granted: true, grants: []given{{Grant: g}}}}
	w := alone.weigh(caps, "", Env{LookupEnv: func(string) (string, bool) { return "", true }})
	gives := w.grant
	switch g.Kind {
	case FS:
		return len(gives.FS) > 0 && gives.FS[0].Mode == g.Mode
	case HTTP:
		return !slices.ContainsFunc(g.Methods, func(m string) bool {
			for _, h := range gives.HTTP {
				if slices.Contains(h.Methods, m) {
					return false
				}
			}
			return true
		})
	case Tool:
		return len(gives.Tools) > 0
	case EnvVar:
		return len(gives.Env) > 0
	case Secret:
		return len(gives.Secrets) > 0 && (gives.Secrets[0].Read || !g.Read)
	case Clock:
		return gives.Clock
	}
	return gives.Random
}
