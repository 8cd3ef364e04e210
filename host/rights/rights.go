// Package rights decides which of its plugin's rights one call has: what its tool needs, within the tool's effect.
package rights

import (
	"cmp"
	"slices"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/manifest"
)

// Of returns the rights that a call of a tool requests. A tool that is one request needs its method at its
// server; the other rights of the plugin are optional then, so that a grant of GET is enough for what only reads.
func Of(m *manifest.Manifest, tool *manifest.Tool) manifest.Capabilities {
	needs := m.Capabilities
	if tool.HTTP == nil {
		return needs
	}
	server, err := origin.Of(cmp.Or(tool.HTTP.Base, m.HTTP.Base))
	needed := func(url string) bool {
		at, invalid := origin.Parse(url)
		return err != nil || invalid != nil || at.Covers(server)
	}
	needs.HTTP, needs.Secrets = nil, slices.Clone(needs.Secrets)
	for _, c := range m.Capabilities.HTTP {
		if len(c.Methods) == 0 {
			c.Methods = []string{"GET"}
		}
		others := c
		others.Optional = true
		if i := slices.Index(c.Methods, tool.HTTP.Method); i >= 0 && needed(c.URL) {
			c.Methods = []string{tool.HTTP.Method}
			others.Methods = slices.Delete(slices.Clone(others.Methods), i, i+1)
			needs.HTTP = append(needs.HTTP, c)
		}
		if len(others.Methods) > 0 {
			needs.HTTP = append(needs.HTTP, others)
		}
	}
	for i, c := range needs.Secrets {
		needs.Secrets[i].Optional = c.Optional || !needed(c.URL)
	}
	return needs
}

// Severity returns the rank of an effect, from harmless to destructive. An unknown effect may be anything.
func Severity(effect string) int {
	switch effect {
	case manifest.EffectRead:
		return 0
	case manifest.EffectWrite:
		return 1
	}
	return 2
}

// ReadMethods are the methods of HTTP that a tool with the effect read may send.
var ReadMethods = []string{"GET", "HEAD"}

// RestrictTo returns the part of the rights that a tool with an effect has. A tool that only reads gets folders
// read-only and may only send GET and HEAD.
func RestrictTo(g grant.Grant, effect string) grant.Grant {
	if effect != manifest.EffectRead {
		return g
	}
	g.FS = slices.Clone(g.FS)
	for i := range g.FS {
		g.FS[i].Mode = "ro"
	}
	var http []grant.HTTP
	for _, h := range g.HTTP {
		if len(h.Methods) > 0 { // none stands for GET
			h.Methods = slices.DeleteFunc(slices.Clone(h.Methods), func(m string) bool {
				return !slices.Contains(ReadMethods, m)
			})
			if len(h.Methods) == 0 {
				continue
			}
		}
		http = append(http, h)
	}
	g.HTTP = http
	return g
}
