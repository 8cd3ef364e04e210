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
func (r *run) effect() string {
	own := r.address.Tool.Effect
	if of := r.address.Provider.Features().Effect; of != nil && r.params.Value != nil {
		less := of(&host.Job{Tool: r.address.Tool.Name, Params: r.params.Value, Caller: r.call.Principal.Name,
			Trusted: r.behalf.trusted})
		if severity(less) < severity(own) {
			return less
		}
	}
	return own
}

// checkEffect returns an error if a plugin's tool calls one with a worse effect than its own: a tool that reads calls
// tools that read, and one that writes calls no destructive ones.
func (r *run) checkEffect() error {
	own, callee := r.behalf.callerEffect, r.effect()
	if len(r.behalf.callers) == 0 || severity(callee) <= severity(own) {
		return nil
	}
	right := "tool:" + r.answer.Tool
	why := fmt.Sprintf("the tool that calls it has the effect %s, and %s has the effect %s; declare the effect %s", own,
		r.answer.Tool, callee, callee)
	return &host.Error{Code: host.Denied, Message: "not granted: " + right + ": " + why + "; nothing was run",
		Denied: []host.Denial{{Right: right, Why: why}}, Steps: []host.Step{host.DescribeStep(r.answer.Tool, 0)}}
}

// checkMethod returns an error if a tool that only reads sends a request that may change something.
func (r *run) checkMethod(q *host.HTTPRequest) error {
	if r.address.Tool.Effect != manifest.EffectRead || q.Method == "" || slices.Contains(readMethods, q.Method) {
		return nil
	}
	right := manifest.CleanLine(manifest.Clip("http:"+q.Method+":"+q.URL, 200))
	why := fmt.Sprintf("%s has the effect read, which allows GET and HEAD; declare the effect write", r.answer.Tool)
	return &host.Error{Code: host.Denied, Message: "not granted: " + right + ": " + why + "; nothing was sent",
		Denied: []host.Denial{{Right: right, Why: why}}}
}
