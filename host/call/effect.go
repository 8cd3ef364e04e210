package call

import (
	"fmt"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// severity returns the rank of an effect, from harmless to destructive. An unknown effect may be anything.
func severity(effect string) int {
	switch effect {
	case manifest.EffectRead:
		return 0
	case manifest.EffectWrite:
		return 1
	}
	return 2
}

// readMethods are the methods of HTTP that a tool with the effect read may send.
var readMethods = []string{"GET", "HEAD"}

// restrictTo returns the part of the rights that a tool with an effect has: one that only reads gets folders read-only
// and may only send GET and HEAD.
func restrictTo(g host.Grant, effect string) host.Grant {
	if effect != manifest.EffectRead {
		return g
	}
	g.FS = slices.Clone(g.FS)
	for i := range g.FS {
		g.FS[i].Mode = "ro"
	}
	var http []host.HTTPGrant
	for _, h := range g.HTTP {
		if len(h.Methods) > 0 { // none stands for GET
			h.Methods = slices.DeleteFunc(slices.Clone(h.Methods), func(m string) bool {
				return !slices.Contains(readMethods, m)
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

// effect returns the effect of the call: that of its tool, unless the provider knows that this call has less.
func (a *authorization) effect() string {
	own := a.params.At.Tool.Effect
	if of := a.params.At.Provider.Features().Effect; of != nil && a.params.Value != nil {
		less := of(a.job())
		if severity(less) < severity(own) {
			return less
		}
	}
	return own
}

// job returns the call as a provider is asked about it before it runs.
func (a *authorization) job() *host.Job {
	return &host.Job{Tool: a.params.At.Tool.Name, Params: a.params.Value, Caller: a.call.Principal.Name}
}

// checkEffect returns an error if a plugin's tool calls one with a worse effect than its own: a tool that reads calls
// tools that read, and one that writes calls no destructive ones.
func (a *authorization) checkEffect() error {
	own, callee := a.behalf.callerEffect, a.effect()
	if len(a.behalf.callers) == 0 || severity(callee) <= severity(own) {
		return nil
	}
	right := "tool:" + a.params.Tool
	why := fmt.Sprintf("the tool that calls it has the effect %s, and %s has the effect %s; declare the effect %s", own,
		a.params.Tool, callee, callee)
	return &host.Error{Code: host.Denied, Message: "not granted: " + right + ": " + why + "; nothing was run",
		Denied: []host.Denial{{Right: right, Why: why}}, Steps: []host.Step{host.DescribeStep(a.params.Tool, 0)}}
}
