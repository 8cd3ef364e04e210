package policy

import (
	"slices"

	"github.com/parley-tools/parley/manifest"
)

// RequestedBy reports whether a manifest requests what a grant gives: something of its name with the whole mode, all
// methods and the reading of the secret. Whatever exceeds the request has no effect, and is most likely meant for
// another plugin.
func (g Grant) RequestedBy(caps manifest.Capabilities) bool {
	only := entry{generated: &plugin{granted: true, grants: []locatedGrant{{Grant: g}}}}
	evaluated := only.evaluate(caps, "", false, Env{LookupEnv: func(string) (string, bool) { return "", true }})
	granted := evaluated.grant
	switch g.Kind {
	case FS:
		return len(granted.FS) > 0 && granted.FS[0].Mode == g.Mode
	case HTTP:
		return !slices.ContainsFunc(g.Methods, func(m string) bool {
			for _, h := range granted.HTTP {
				if slices.Contains(h.Methods, m) {
					return false
				}
			}
			return true
		})
	case Tool:
		return len(granted.Tools) > 0
	case EnvVar:
		return len(granted.Env) > 0
	case Secret:
		return len(granted.Secrets) > 0 && (granted.Secrets[0].Read || !g.Read)
	case Browser:
		return granted.Browser
	case Clock:
		return granted.Clock
	case Caller:
		return granted.Caller
	}
	return granted.Random
}
