package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/api"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/generate"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
)

// rehearsal is a host over one plugin that records requests instead of sending them.
type rehearsal struct {
	*call.Host
	plugin *manifest.Manifest
	sent   []string // the requests since the last call of reset
}

func newRehearsal(m *manifest.Manifest) (*rehearsal, error) {
	r := &rehearsal{plugin: m}
	catalog, err := host.NewCatalog(provider{m: m})
	if err == nil {
		r.Host, err = call.New(call.Config{Catalog: catalog, Policy: everything{}, Egress: r})
	}
	return r, err
}

var boundary = regexp.MustCompile(`boundary=([0-9a-z]+)`)

// Send records a request. The response has no content.
func (r *rehearsal) Send(_ context.Context, q *outbound.Request, _ outbound.Rights) (*outbound.Response, error) {
	text := fmt.Sprintf("%s %s\n%v\n%s", q.Method, q.URL, q.Headers, q.Body)
	if mark := boundary.FindStringSubmatch(text); mark != nil { // which is random
		text = strings.ReplaceAll(text, mark[1], "BOUNDARY")
	}
	r.sent = append(r.sent, text)
	return &outbound.Response{Status: 204}, nil
}

// Dial refuses: plugins of kind http open no connections.
func (r *rehearsal) Dial(context.Context, string, []grant.HTTP) (net.Conn, error) {
	return nil, host.Errorf(host.Denied, "no connections")
}

// everything is a policy that allows every call.
type everything struct{}

// Decide allows the call.
func (everything) Decide(context.Context, host.Ask) (host.Decision, error) {
	return host.Decision{Verdict: host.Allow, Grant: grant.Grant{HTTP: []grant.HTTP{{URL: "https://*"}}}}, nil
}

// provider provides the tools of a manifest.
type provider struct {
	host.Provider
	m *manifest.Manifest
}

func (p provider) Info() host.Info {
	return host.Info{Name: p.m.Name, Version: p.m.Version, Kind: p.m.Kind, Tools: len(p.m.Tools),
		Owner: host.OwnerUnsigned, Digest: "sha256:" + p.m.Source.SHA256}
}
func (p provider) Manifest() (*manifest.Manifest, error)    { return p.m, nil }
func (p provider) Lines(string) ([]host.Line, error)        { return nil, nil }
func (p provider) Groups() ([]host.GroupLine, error)        { return nil, nil }
func (p provider) Tool(name string) (*manifest.Tool, error) { return p.m.Tool(name), nil }
func (p provider) Segment() ([]byte, error)                 { return nil, nil }
func (p provider) Features() host.Features                  { return host.Features{} }
func (p provider) Names() (names []string, err error) {
	for i := range p.m.Tools {
		names = append(names, p.m.Tools[i].Name)
	}
	return names, nil
}

// Invoke makes the request of a call.
func (p provider) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	return api.Run(ctx, p.m, r)
}

// try calls a tool, and returns the request that it made, "" if it made none.
func (r *rehearsal) try(ctx context.Context, tool *manifest.Tool, params any) (sent string, failed *host.Error) {
	r.sent = nil
	a, _ := r.Call(ctx, host.Call{Name: r.plugin.Name + "." + tool.Name, Params: jsontext.Marshal(params),
		Principal: caller.Principal{Name: caller.CLI}}) // the error is a.Err
	if len(r.sent) == 1 && a.Err == nil {
		return r.sent[0], nil
	}
	return "", a.Err
}

// tries is how many values are made at most until one fits.
const tries = 60

// call returns why a tool cannot be called, "" if a call with parameters that were made by its schema sends a request
// that has all of them.
func (r *rehearsal) call(ctx context.Context, tool *manifest.Tool) (reason string) {
	if _, err := schema.CompileUntrusted(tool.Params); err != nil {
		return "its schema is not applied: " + err.Error()
	}
	b := tool.HTTP
	for name := range propertiesOf(tool) {
		isNamed := func(p manifest.Placed) bool { return p.Name == name }
		inPath := slices.ContainsFunc(manifest.PathParameter().FindAllStringSubmatch(b.Path, -1),
			func(match []string) bool { return match[2] == name })
		if b.Body == "" && !inPath && !slices.ContainsFunc(slices.Concat(b.Query, b.Header, b.Cookie), isNamed) {
			return "no request has the parameter " + name
		}
	}
	made, err := generate.New(tool.Params, 1)
	if err != nil {
		return err.Error()
	}
	for range tries {
		sent, failed := r.try(ctx, tool, made.Value())
		if sent != "" {
			return ""
		}
		reason = fmt.Sprintf("%d calls sent nothing; the last one: %v %+v", tries, failed, failed.Details)
	}
	return reason
}

// property is what mistakes have to know of the schema of a parameter.
type property struct {
	Enum []any
}

func propertiesOf(tool *manifest.Tool) map[string]property {
	var s struct{ Properties map[string]property }
	_ = json.Unmarshal(tool.Params, &s) // the manifest has been read
	return s.Properties
}

// kind is a kind of mistake: make changes a right call, and reports whether it could.
type kind struct {
	name string
	make func(known map[string]property, required []string, params map[string]any) (name string, ok bool)
}

var kinds = []kind{
	{"name misspelt", misspell}, {"required missing", omit}, {"type wrong", retype}, {"enum in another case", recase},
}

// outcome is what became of a mistake.
type outcome struct {
	kind, tool   string
	right, wrong map[string]any
	recovered    bool
	got          string // what the host said
}

func (o outcome) String() string {
	return fmt.Sprintf("%s: %s: %s for %s: %s", o.kind, o.tool, jsontext.Marshal(o.wrong), jsontext.Marshal(o.right),
		o.got)
}

// mistakes makes one mistake of each kind with a tool, from calls that send a request.
func (r *rehearsal) mistakes(ctx context.Context, tool *manifest.Tool) (all []outcome) {
	compiled, err := schema.CompileUntrusted(tool.Params)
	if err != nil {
		return nil
	}
	made, err := generate.New(tool.Params, 2)
	if err != nil {
		return nil
	}
	var s struct{ Required []string }
	_ = json.Unmarshal(tool.Params, &s)
	known := propertiesOf(tool)
	left := slices.Clone(kinds)
	for range tries {
		right, _ := made.Value().(map[string]any)
		if violations, err := compiled.Validate(right); err != nil || len(violations) > 0 {
			continue
		}
		sent := ""
		left = slices.DeleteFunc(left, func(k kind) bool {
			wrong := maps.Clone(right)
			name, ok := k.make(known, s.Required, wrong)
			if violations, err := compiled.Validate(wrong); !ok || err != nil || len(violations) == 0 {
				return false
			}
			if sent == "" {
				if sent, _ = r.try(ctx, tool, right); sent == "" {
					return false
				}
			}
			o := outcome{kind: k.name, tool: tool.Name, right: right, wrong: wrong}
			again, failed := r.try(ctx, tool, wrong)
			o.recovered, o.got = again == sent, again
			if failed != nil {
				o.recovered, o.got = leadsBack(failed, right, wrong, name), fmt.Sprintf("%v %s %s", failed, failed.Corrected,
					failed.Template)
			}
			all = append(all, o)
			return true
		})
	}
	return all
}

// leadsBack reports whether an error suggests the right call or, for a missing parameter, a template that has all
// others as they were given.
func leadsBack(failed *host.Error, right, wrong map[string]any, missing string) bool {
	if failed.Retry != nil {
		return string(jsontext.Marshal(right)) == canonical(failed.Retry.Params)
	}
	template, _ := jsontext.Decode(failed.Template, jsontext.Limits{})
	params, _ := template.(map[string]any)
	if _, has := params[missing]; !has || missing == "" {
		return false
	}
	delete(params, missing)
	return string(jsontext.Marshal(params)) == string(jsontext.Marshal(wrong))
}

// canonical returns a JSON text with its members in order.
func canonical(raw json.RawMessage) string {
	v, err := jsontext.Decode(raw, jsontext.Limits{})
	if err != nil {
		return err.Error()
	}
	return string(jsontext.Marshal(v))
}

// misspell leaves out a letter in the middle of a name. Names of less than four letters are left as they are: without
// a letter, they are other words.
func misspell(known map[string]property, _ []string, params map[string]any) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		typo := name[:len(name)/2] + name[len(name)/2+1:]
		if _, is := known[typo]; len(name) > 3 && !is {
			params[typo] = params[name]
			delete(params, name)
			return "", true
		}
	}
	return "", false
}

func omit(_ map[string]property, required []string, params map[string]any) (string, bool) {
	if len(required) == 0 {
		return "", false
	}
	delete(params, required[0])
	return required[0], true
}

// retype gives a value in another type, from which it can be seen: 7 as "7", an object as its text or, where all values
// are texts, "a" as ["a"].
func retype(_ map[string]property, _ []string, params map[string]any) (string, bool) {
	last := ""
	for _, name := range slices.Sorted(maps.Keys(params)) {
		switch v := params[name].(type) {
		case json.Number, bool, map[string]any, []any:
			params[name] = string(jsontext.Marshal(v))
			return "", true
		case string:
			last = name
		}
	}
	if last != "" {
		params[last] = []any{params[last]}
	}
	return "", last != ""
}

func recase(known map[string]property, _ []string, params map[string]any) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		v, _ := params[name].(string)
		other := strings.ToUpper(v)
		if other == v {
			other = strings.ToLower(v)
		}
		if enum := known[name].Enum; other != v && slices.Contains(enum, any(v)) && !slices.Contains(enum, any(other)) {
			params[name] = other
			return "", true
		}
	}
	return "", false
}
