package api

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/redact"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// cursors says where responses have the cursor of their next page, and which parameters take it.
var cursors = []struct{ at, parameters string }{
	{"next_cursor", "cursor start_cursor next_cursor page_cursor after"},
	{"nextCursor", "cursor startCursor nextCursor"},
	{"response_metadata/next_cursor", "cursor"},
	{"meta/next_cursor", "cursor"},
	{"next_page_token", "page_token next_page_token"},
	{"nextPageToken", "pageToken nextPageToken"},
	{"next_token", "next_token pagination_token"},
	{"meta/next_token", "pagination_token next_token"},
	{"next_marker", "marker"},
	{"next_page/offset", "offset"},
	{"metadata/continue", "continue"},
	{"paging/next/after", "after"},
	{"paging/cursors/after", "after"},
}

// linkNext matches one link of a Link header.
var linkNext = lazy.Pattern(`<([^<>]*)>((?:\s*;[^;,="<]*(?:="[^"]*"|=[^;,"<]*)?)*)`)

var isNext = lazy.Pattern(`(?i);\s*rel\s*=\s*("[^"]*\bnext\b[^"]*"|next\b)`)

// nextPage returns the step that requests the next page, as the Link header or the data says: the same call with other
// values. It is nil if the tool cannot request that page, or is destructive: no server says what to delete next.
func (p *response) nextPage(data json.RawMessage) []step.Step {
	changed, ok := map[string]json.RawMessage{}, false
	for _, h := range p.Headers {
		if h[0] != "link" {
			continue
		}
		for _, link := range linkNext().FindAllStringSubmatch(h[1], -1) {
			if !ok && isNext().MatchString(link[2]) {
				ok = p.request.fromURL(p.url, link[1], changed)
			}
		}
	}
	if !ok && jsontext.Scan(data).Peek() == '{' {
		ok = p.fromData(data, changed)
	}
	if !ok || p.request.Def.Effect == manifest.EffectDestructive {
		return nil
	}
	params := p.request.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	for name, v := range changed {
		params = jsontext.Set(params, nil, name, v)
	}
	return []step.Step{step.Call(p.request.plugin.Name+"."+p.request.Def.Name, params)}
}

// fromURL finds the values of a link to the next page, and reports whether the tool can request it: the link leads to
// the same host, and differs from the request by parameters that the tool has in its query.
func (q *request) fromURL(current, link string, changed map[string]json.RawMessage) bool {
	from, err := url.Parse(current)
	if err != nil {
		return false
	}
	to, err := from.Parse(link)
	if err != nil || to.Host != from.Host {
		return false
	}
	before, after, found := from.Query(), to.Query(), map[string]json.RawMessage{}
	for wire, values := range after {
		if slices.Equal(before[wire], values) || q.isCredential(wire) {
			continue
		}
		i := slices.IndexFunc(q.binding.Query, func(p manifest.Placed) bool { return q.wire(p.Name) == wire })
		if i < 0 || len(values) != 1 || !q.set(found, q.binding.Query[i].Name, values[0]) {
			return false
		}
	}
	maps.Copy(changed, found)
	return len(found) > 0
}

// isCredential reports whether the host adds a parameter to the query, with the value of a secret.
func (q *request) isCredential(wire string) bool {
	return slices.ContainsFunc(q.Grant.Secrets, func(s grant.Secret) bool { return s.Query == wire })
}

// set sets a parameter to the value of a text of the response, and reports whether that differs from what was given.
func (q *request) set(changed map[string]json.RawMessage, name, text string) bool {
	encoded := jsontext.AppendString(nil, text)
	if p := q.properties()[name]; (p.is("integer") || p.is("number")) && jsontext.ValidNumber(text) {
		encoded = []byte(text)
	} else if !p.is("string") && p.Type != nil {
		return false
	}
	i := slices.IndexFunc(q.params, func(m member) bool { return m.name == name })
	if i >= 0 && q.params[i].text() == text || strings.Contains(text, redact.Prefix) { // a redacted text is no cursor
		return false
	}
	changed[name] = encoded
	return true
}

// fromData finds the cursor of the next page in the data of a response.
func (p *response) fromData(data json.RawMessage, changed map[string]json.RawMessage) bool {
	decoded, err := jsontext.Decode(data, jsontext.Limits{Bytes: max(len(data), 1)})
	if err != nil {
		return false
	}
	at := func(path string) string {
		v, _ := jsontext.Lookup(decoded, strings.Split(path, "/"))
		if text, isText := v.(string); isText {
			return text
		}
		number, _ := v.(json.Number)
		return number.String()
	}
	for _, c := range cursors {
		if cursor := at(c.at); cursor != "" {
			for _, wire := range strings.Fields(c.parameters) {
				if p.request.setWire(changed, wire, cursor) {
					return true
				}
			}
		}
	}
	for _, path := range []string{"next", "links/next", "next_page_url", "@odata.nextLink"} {
		if link := at(path); link != "" && p.request.fromURL(p.url, link, changed) {
			return true
		}
	}
	list, _ := jsontext.Lookup(decoded, []string{"data"})
	items, _ := list.([]any)
	if more, _ := jsontext.Lookup(decoded, []string{"has_more"}); more != true || len(items) == 0 {
		return false
	}
	id, _ := jsontext.Lookup(items[len(items)-1], []string{"id"})
	return id != nil && p.request.setWire(changed, "starting_after", jsontext.Text(id))
}

// setWire is set for the parameter with this name in the request, if the tool has one.
func (q *request) setWire(changed map[string]json.RawMessage, wire, text string) bool {
	for name := range q.properties() {
		if q.wire(name) == wire {
			return q.set(changed, name, text)
		}
	}
	return false
}
