// Package api runs plugins of kind http. It makes the request of a call from the binding of the tool, asks the host to
// send it, as a guest does, and makes the result of the call from the response. It sends nothing itself:
// [job.AskHTTP] applies grants, secrets, limits, redaction and records.
package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Run runs one call of a plugin of kind http. m is its manifest, whose tools are not read; the tool is r.Def. Errors
// are [*host.Error]: the host's for a request that was not sent or not answered, invalid_args for parameters that no
// request can have, and the tool's own for a response with a status of 300 or more.
func Run(ctx context.Context, m *manifest.Manifest, r *host.Request) (*job.Result, error) {
	if m.HTTP == nil || r.Def == nil || r.Def.HTTP == nil {
		return nil, host.Errorf(host.InvalidPlugin, "%s.%s has no request in its manifest; install the plugin again",
			m.Name, r.Tool)
	}
	q := newRequest(m, r)
	sent, err := q.build(ctx)
	if err != nil {
		return nil, err
	}
	argument, err := manifest.Marshal(sent)
	if err != nil {
		return nil, err
	}
	if len(argument) > host.MaxParams {
		return nil, host.Errorf(host.LimitExceeded, "the request has %s with its body as base64; the limit is %s",
			host.SizeOf(len(argument)), host.SizeOf(host.MaxParams))
	}
	to, _ := origin.Of(sent.URL)
	subject := sent.Method + " " + to.String()
	reply, err := r.Ask(ctx, job.AskHTTP, argument)
	if err != nil {
		e := *host.AsError(err) // other calls may have the same error
		if e.Subject = subject; e.Code == host.InvalidArgs && len(e.Steps) == 0 {
			e.Steps = []step.Step{step.Describe(m.Name+"."+r.Def.Name, 0)}
		}
		return nil, &e
	}
	p := response{request: q, url: sent.URL}
	if err := json.Unmarshal(reply.Data, &p); err != nil {
		return nil, host.Errorf(host.Internal, "the response cannot be read: %v", err)
	}
	if p.body = p.Binary; p.Text != nil {
		p.body = []byte(*p.Text)
	}
	subject = fmt.Sprintf("%s %d", subject, p.Status)
	if p.Status < 200 || p.Status >= 300 {
		e := p.failure()
		e.Subject = subject
		return nil, e
	}
	result, err := p.result()
	if err != nil {
		e := host.AsError(err).WithSteps(step.Describe(m.Name+"."+r.Def.Name, 0)) // the request is not to be sent again
		e.Subject = subject
		return nil, e
	}
	result.Subject, result.Steps = subject, p.nextPage(result.Data)
	return result, nil
}
