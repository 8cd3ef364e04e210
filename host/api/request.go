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
	return &request{Request: r, plugin: m, binding: r.Def.HTTP, params: value(r.Params).members(),
		properties: sync.OnceValue(func() map[string]property { return propertiesOf(r.Def.Params) })}
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

// take removes a parameter from those that are left for the body. ok is false if it was not given.
func (q *request) take(rest *[]member, name string) (v value, ok bool) {
	i := slices.IndexFunc(*rest, func(m member) bool { return m.name == name })
	if i < 0 {
		return nil, false
	}
	v = (*rest)[i].value
	*rest = slices.Delete(*rest, i, i+1)
	return v, true
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
	rest := slices.Clone(q.params)
	base := cmp.Or(q.binding.Base, q.plugin.HTTP.Base)
	path, err := q.path(&rest)
	if err != nil {
		return nil, err
	}
	sent := &sentRequest{Method: q.binding.Method, URL: base + path}
	query := pairs{escape: escapeURL}
	for _, p := range q.binding.Query {
		if v, ok := q.take(&rest, p.Name); ok {
			query.addStyled(q.wire(p.Name), p.Style, v)
		}
	}
	if query.text.Len() > 0 {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		sent.URL += separator + query.text.String()
	}
	header := map[string]string{"accept": "application/json, */*;q=0.8"}
	for name, text := range q.plugin.HTTP.Headers {
		header[strings.ToLower(name)] = text
	}
	for _, name := range q.binding.Header {
		if v, ok := q.take(&rest, name); ok && v.text() != "" {
			header[strings.ToLower(q.wire(name))] = strings.Join(v.texts(), ",")
		}
	}
	delete(header, "content-type") // only the body has one
	media := ""
	if media, sent.Body, err = q.body(ctx, rest); err != nil {
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
func (q *request) path(rest *[]member) (string, error) {
	var b strings.Builder
	template, end := q.binding.Path, 0
	for _, at := range manifest.PathParameter().FindAllStringSubmatchIndex(template, -1) {
		b.WriteString(template[end:at[0]])
		end = at[1]
		name := template[at[2]:at[3]]
		v, ok := q.take(rest, name)
		if !ok { // it was in the path before
			given := slices.Clone(q.params)
			v, _ = q.take(&given, name)
		}
		texts := v.texts()
		for i, text := range texts {
			if strings.ContainsFunc(text, unicode.IsControl) {
				return "", badPath(name, text)
			}
			texts[i] = escapeURL(text)
		}
		joined := strings.Join(texts, ",")
		if joined == "" {
			return "", badPath(name, "")
		}
		b.WriteString(joined)
		// What stands around the parameter counts, too.
		filled := b.String() + manifest.PathParameter().ReplaceAllString(template[end:], "x")
		if leaves(filled) {
			return "", badPath(name, strings.Join(v.texts(), ","))
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
