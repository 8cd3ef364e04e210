package policy

import (
	"strings"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/quota"
)

// addQuota reads the keys that limit what a caller uses.
func (c *callerEntry) addQuota(t table) {
	c.quota.In = map[string]string{}
	for _, k := range quota.Keys {
		n := k.Of(&c.quota)
		if k.Name != quota.Rate {
			*n = t.integer(k.Name, k.Most)
		} else if text, given := t.text(k.Name); given {
			ok := false
			if *n, c.quota.Per, ok = quota.ParseRate(text); !ok {
				t.addProblem(k.Name, "rate must be a number of calls and a time such as \"10/s\", \"100/m\" or \"1000/h\", "+
					"not %s", quote(text))
			}
		}
		if *n > 0 {
			c.quota.In[k.Name] = t.keyPos(k.Name).String()
		}
	}
	if strings.HasPrefix(c.pattern, kindPlugin) && len(c.quota.In) > 0 {
		t.doc.addProblem(c.pos, "rate, concurrent, daily_calls and daily_bytes are for cli, mcp: and mcp-http:; what the "+
			"calls of a plugin return counts for its caller")
	}
}

// quotaOf returns what a caller may use, or nil if nothing limits it. Each limit is from the most specific entry that
// has it. Over the network the entries for mcp-http come first, and all clients that have not proved their names share
// what the entries for all clients allow.
func (s *state) quotaOf(p caller.Principal) *grant.Quota {
	q := grant.Quota{Account: p.Name, In: map[string]string{}}
	kind, name, _ := strings.Cut(p.Name, ":")
	names := []string{p.Name}
	if kind == kindHTTP && !p.Bound {
		q.Account, name = kindHTTP+":*", nobody
	}
	if kind == kindHTTP {
		names = []string{kindHTTP + ":" + name, kindMCP + ":" + name}
	}
	for _, k := range quota.Keys {
		from := first(names, func(name string) (*callerEntry, bool) {
			c := mostSpecific(s, name, func(c *callerEntry) (*callerEntry, bool) { return c, *k.Of(&c.quota) > 0 })
			return c, c != nil
		})
		if from == nil {
			continue
		}
		if *k.Of(&q), q.In[k.Name] = *k.Of(&from.quota), from.quota.In[k.Name]; k.Name == quota.Rate {
			q.Per = from.quota.Per
		}
	}
	if len(q.In) == 0 {
		return nil
	}
	return &q
}
