package cdp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/cdp/internal/protocol"
	"github.com/parley-tools/parley/host"
)

// This file repeats calls to which Chrome answers that a domain is not enabled: with the domain enabled for the call,
// where the reviewed table says that this does not affect the page, and the caller may enable it.

// sendEnabling is [send] for a caller's command. The warnings say which domains were enabled for it.
func (p *Provider) sendEnabling(ctx context.Context, c *keeper.Client, r *host.Request) (
	data json.RawMessage, written int64, warnings []string, err error,
) {
	var done api.Enabled
	c = c.OnEnabled(func(e api.Enabled) { done = e })
	target, domains := r.Options.Target, []string(nil)
	for {
		data, written, err = send(ctx, c, r, target, domains...)
		more := p.protocol.domainsToEnable(ctx, r, domains, data, err)
		if len(more) == 0 {
			break
		}
		domains = append(domains, more...)
		if k, ok := errors.AsType[*api.Error](err); ok && k.Target != "" {
			target = k.Target // the current target can change meanwhile
		}
	}
	for _, domain := range slices.Concat(done.Off, done.Kept) {
		r.RecordUse("tool:" + Name + "." + domain + ".enable")
	}
	return data, written, warnEnabled(done), err
}

// domainsToEnable returns the domains to enable before a call is repeated, those that another needs first. It returns
// nil if its outcome does not ask for any, if they were all enabled already, or if the table or the policy does not
// allow one of them.
func (t translation) domainsToEnable(ctx context.Context, r *host.Request, enabled []string, data json.RawMessage,
	err error) (domains []string) {
	missing := t.disabledDomain(r.Tool, data, err)
	if missing == "" {
		return nil
	}
	d, _ := protocol.Embedded().Domain(missing)
	for _, name := range append(d.Enabling.Needs, missing) {
		needed, _ := protocol.Embedded().Domain(name)
		switch {
		case slices.Contains(enabled, name):
		case !needed.Enabling.Allows(protocol.Embedded().Rights(r.Tool).Effect):
			return nil
		default:
			may, err := host.AskFor[bool](ctx, r, host.AskMayCall, host.ToolArgument{Tool: name + ".enable"})
			if err != nil || !may {
				return nil
			}
			domains = append(domains, name)
		}
	}
	return domains
}

// disabledDomain returns the domain that the outcome of a command says is not enabled, "" for other outcomes.
func (t translation) disabledDomain(tool string, data json.RawMessage, err error) string {
	k, ok := errors.AsType[*api.Error](err)
	switch {
	case err == nil && len(data) > 0 && string(data) == emptyIfDisabled[tool]:
		return api.DomainOf(tool)
	case !ok || k.Chrome == nil || remedyIn(k.Chrome.Message) != nil:
		return ""
	}
	return strings.TrimSuffix(t.enableCommand(tool, k.Chrome.Message), ".enable")
}

// emptyIfDisabled are the results of commands that succeed while their domain is disabled, but return nothing.
var emptyIfDisabled = map[string]string{
	"Performance.getMetrics": `{"metrics":[]}`,
	"CSS.getMediaQueries":    `{"medias":[]}`,
}

// warnEnabled returns a warning for domains that were disabled again, and one for those that stay enabled.
func warnEnabled(done api.Enabled) (warnings []string) {
	for _, w := range []struct {
		domains         []string
		single, several string
	}{
		{done.Off, "%s was enabled for this call and is off again; %s.enable keeps it on",
			"%s were enabled for this call and are off again; %s.enable keeps them on"},
		{done.Kept, "%s was enabled for this call and stays on, because ids or settings end with it; %s.disable ends them",
			"%s were enabled for this call and stay on, because ids or settings end with them; %s.disable ends them"},
	} {
		format := w.single
		if len(w.domains) > 1 {
			format = w.several
		}
		if len(w.domains) > 0 {
			warnings = append(warnings, fmt.Sprintf(format, strings.Join(w.domains, " and "), Name+"."+w.domains[0]))
		}
	}
	return warnings
}
