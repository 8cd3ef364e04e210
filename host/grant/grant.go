// Package grant says what a call may access, and how much it may use: rights, limits and quotas.
package grant

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// Denial is a right that was denied.
type Denial struct {
	Right string `json:"right"` // in the grammar of grants: "http:GET:https://api.github.com"
	Why   string `json:"why,omitempty"`
}

// Named returns the rights of denials, in the grammar of grants.
func Named(denied []Denial) (names []string) {
	for _, d := range denied {
		names = append(names, d.Right)
	}
	return names
}

// Requested returns the rights that a manifest requests, in the grammar of grants, with PATH for each folder that
// the operator has to choose. Why is the plugin's own text, cleaned.
func Requested(c manifest.Capabilities) (rights []Denial) {
	for _, r := range c.Rights() {
		rights = append(rights, Denial{Right: r.Name, Why: r.Why})
	}
	return rights
}

// Grant is what a call may access: requested by the manifest and granted by the policy. The zero value allows nothing.
type Grant struct {
	FS      []FS
	HTTP    []HTTP
	Secrets []Secret
	Env     map[string]string // values included
	Tools   []string          // names and globs
	Browser bool              // act in the browser context of the caller's session
	Clock   bool
	Random  bool
	Caller  bool // make inner calls as the caller; see call.Host.Call
}

// FS makes a folder of this machine available to the guest at a path.
type FS struct {
	Path   string // as the guest sees it
	Source string // absolute, on this machine
	Mode   string // ro or rw
}

// HTTP allows requests with some methods to one origin or host pattern.
type HTTP struct {
	URL     string
	Methods []string
}

// Secret lets the host add a secret to requests. With Read the guest may read it. Several grants may have the same
// name.
type Secret struct {
	Name   string
	Read   bool
	URL    string // origin of the requests that it is added to; "" if it is only read
	Header string // "Authorization: Bearer {secret}"; {secret:basic} is its base64
	Query  string // instead of Header: the name of a parameter of the query
	Login  string // the plugin that a person logs in to, to get the value; "" if the value comes from elsewhere
}

// Names returns each right as one word, as dry runs and the audit show it: "fs:ro:/srv/data=/data".
func (g Grant) Names() []string {
	names := []string{}
	for _, f := range g.FS {
		names = append(names, "fs:"+f.Mode+":"+f.Source+"="+f.Path)
	}
	for _, h := range g.HTTP {
		names = append(names, "http:"+cmp.Or(strings.Join(h.Methods, ","), "GET")+":"+h.URL)
	}
	for _, t := range g.Tools {
		names = append(names, "tool:"+t)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Env)) {
		names = append(names, "env:"+name)
	}
	for _, s := range g.Secrets {
		name := "secret:" + s.Name
		if s.Read {
			name = "secret:read:" + s.Name
		}
		if !slices.Contains(names, name) { // several may have this name, each for a URL of its own
			names = append(names, name)
		}
	}
	for _, flag := range []struct {
		given bool
		name  string
	}{{g.Browser, "browser:session"}, {g.Clock, "clock"}, {g.Random, "random"}, {g.Caller, "caller"}} {
		if flag.given {
			names = append(names, flag.name)
		}
	}
	return names
}
