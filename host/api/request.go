package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// request is what a request is made from.
type request struct {
	*host.Request
	plugin     *manifest.Manifest
	binding    *manifest.Binding
	params     []member // in the order in which they were given
	taken      map[string]bool
	properties func() map[string]property
}

// property is the part of a parameter's schema that a request needs.
type property struct {
	Type  any       `json:"type"`
	Ref   string    `json:"$ref"`
	Items *property `json:"items"`
	// Encoding is base64 where the text stands for bytes, of the type Media.
	Encoding string `json:"contentEncoding"`
	Media    string `json:"contentMediaType"`
	Handed   bool   `json:"x-handed"` // the value is the text of a file of the host
}

// is reports whether the schema allows values of a type.
func (p property) is(name string) bool {
	names, _ := p.Type.([]any)
	return p.Type == name || slices.Contains(names, any(name))
}

func newRequest(m *manifest.Manifest, r *host.Request) *request {
	properties := sync.OnceValue(func() map[string]property { return propertiesOf(r.Def.Params) })
	return &request{r, m, r.Def.HTTP, value(r.Params).members(), map[string]bool{}, properties}
}

// propertiesOf reads the properties of a schema. References to its own definitions are followed once.
func propertiesOf(schema json.RawMessage) map[string]property {
	var s struct {
		Properties map[string]property
		Defs       map[string]property `json:"$defs"`
	}
	_ = json.Unmarshal(schema, &s) // the schema has passed the parser of manifests
	for name, p := range s.Properties {
		if of, ok := s.Defs[strings.TrimPrefix(p.Ref, "#/$defs/")]; ok {
			s.Properties[name] = of
		}
	}
	return s.Properties
}

// wire returns the name that a parameter has in the request.
func (q *request) wire(name string) string { return cmp.Or(q.binding.As[name], name) }

// take returns the value of a parameter, which is then not in the body. ok is false if it was not given.
func (q *request) take(name string) (v value, ok bool) {
	i := slices.IndexFunc(q.params, func(m member) bool { return m.name == name })
	if i < 0 {
		return nil, false
	}
	q.taken[name] = true
	return q.params[i].value, true
}

// sentRequest is the argument of job.AskHTTP.
type sentRequest struct {
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Body    []byte      `json:"body_base64,omitempty"`
}

// build makes the request.
func (q *request) build(ctx context.Context) (*sentRequest, error) {
	base := cmp.Or(q.binding.Base, q.plugin.HTTP.Base)
	path, err := q.path()
	if err != nil {
		return nil, err
	}
	sent := &sentRequest{Method: q.binding.Method, URL: base + path}
	var query, cookies []string
	for _, p := range q.binding.Query {
		if v, ok := q.take(p.Name); ok {
			n := notation{escape: escapeURL, isNamed: true}
			if p.Reserved {
				n.escape = escapeReserved
			}
			query = append(query, n.styled(q.wire(p.Name), p.Style, v)...)
		}
	}
	if len(query) > 0 {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		sent.URL += separator + strings.Join(query, "&")
	}
	header := map[string]string{"accept": "application/json, */*;q=0.8"}
	for name, text := range q.plugin.HTTP.Headers {
		header[strings.ToLower(name)] = text
	}
	for _, p := range q.binding.Header {
		if v, ok := q.take(p.Name); ok && v.text() != "" {
			n := notation{escape: strings.Clone}
			parts := n.styled("", cmp.Or(p.Style, manifest.StyleComma), v)
			header[strings.ToLower(q.wire(p.Name))] = strings.Join(parts, ",")
		}
	}
	for _, p := range q.binding.Cookie {
		if v, ok := q.take(p.Name); ok {
			n := notation{escape: escapeURL, isNamed: true}
			cookies = append(cookies, n.styled(q.wire(p.Name), p.Style, v)...)
		}
	}
	if len(cookies) > 0 {
		header["cookie"] = strings.Join(cookies, "; ")
	}
	delete(header, "content-type") // only the body has one
	media := ""
	if media, sent.Body, err = q.body(ctx); err != nil {
		return nil, err
	}
	if media != "" {
		header["content-type"] = media
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		sent.Headers = append(sent.Headers, [2]string{name, header[name]})
	}
	return sent, nil
}

// path fills the parameters into the path. Each stays within its segment: no value makes a segment empty, or one that
// a server would decode and take for the way to another path.
func (q *request) path() (string, error) {
	var b strings.Builder
	template, end := q.binding.Path, 0
	for _, at := range manifest.PathParameter().FindAllStringSubmatchIndex(template, -1) {
		b.WriteString(template[end:at[0]])
		end = at[1]
		operator, name := template[at[2]:at[3]], template[at[4]:at[5]]
		v, _ := q.take(name)
		given := strings.Join(v.texts(), ",")
		if strings.Trim(given, ",") == "" || strings.ContainsFunc(given, unicode.IsControl) {
			return "", badPath(name, given)
		}
		n := notation{escape: escapeURL, isNamed: operator == ";", exploded: at[6] < at[7], joint: ","}
		b.WriteString(operator + strings.Join(n.parts(q.wire(name), v), cmp.Or(operator, ",")))
		// What stands around the parameter counts, too.
		filled := b.String() + manifest.PathParameter().ReplaceAllString(template[end:], "x")
		if leaves(filled) {
			return "", badPath(name, given)
		}
	}
	return b.String() + template[end:], nil
}

// decoder decodes, once, the escapes of characters that may end a segment or lead elsewhere.
var decoder = strings.NewReplacer("%25", "%", "%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "\\", "%5C", "\\",
	"%3b", ";", "%3B", ";", "%3f", "?", "%3F", "?", "%23", "#", "%00", "\x00")

// leaves reports whether a path has a segment that leads elsewhere, also after it has been decoded more than once.
func leaves(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	for range 4 {
		for _, segment := range strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' }) {
			if segment = segment[:strings.IndexAny(segment+";", ";?#\x00")]; segment == "." || segment == ".." {
				return true
			}
		}
		path = decoder.Replace(path)
	}
	return false
}

func badPath(name, given string) *host.Error {
	const expected = "a text that is one segment of a path: not empty, without . or .. as a segment"
	return &host.Error{Code: host.InvalidArgs, Message: fmt.Sprintf("%s is in the path: expected %s; nothing was sent",
		name, expected), Details: []host.Detail{{Parameter: "/" + name, Keyword: "path", Provided: quoted(given, 80),
		Expected: expected}}}
}

func quoted(s string, bytes int) string {
	return `"` + manifest.Clip(manifest.CleanLine(s), bytes) + `"`
}

// carriesBody reports whether a request with this method has a body even if no parameter is in it.
func carriesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}
