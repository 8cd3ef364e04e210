package manifest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/internal/lists"
)

// Document is the document that a derived manifest was generated from. Such a manifest repeats somebody else's
// document, so other rules apply to it: see [Manifest.Derived].
type Document struct {
	Type   string `json:"type"`             // openapi or mcp
	Origin string `json:"origin,omitempty"` // of the service, such as https://api.github.com
	SHA256 string `json:"sha256"`           // of the document, in hexadecimal
}

// Derived reports whether a command generated the manifest from somebody's document. Schemas that the gate refuses
// are then only shown, and a result that does not match its schema is only a warning.
func (m *Manifest) Derived() bool { return m.Source != nil && m.Kind == KindHTTP }

// HTTP says where the tools of a plugin of kind http send their requests.
type HTTP struct {
	Base    string            `json:"base"`              // the URL that all paths follow; without a slash at its end
	Headers map[string]string `json:"headers,omitempty"` // sent with each request, by name
}

// Binding says how a call becomes a request. A parameter that is not in Path, Query, Header or Cookie is in the body.
type Binding struct {
	Method string `json:"method"`
	// Path follows the base: "/repos/{owner}/issues". A parameter in braces is one segment of it, written as RFC 6570
	// says: {.name} as a label, {;name} as a matrix parameter, and exploded with an asterisk, {name*}.
	Path   string   `json:"path"`
	Base   string   `json:"base,omitempty"` // instead of the manifest's
	Query  []Placed `json:"query,omitempty"`
	Header []Placed `json:"header,omitempty"`
	Cookie []Placed `json:"cookie,omitempty"`
	// Body is json, form, multipart, or raw:TYPE for a text of that media type. "" means that there is no body.
	Body string `json:"body,omitempty"`
	// Whole is the parameter whose value is the whole body; "" means that the body has the parameters by their names.
	Whole string `json:"whole,omitempty"`
	// As maps parameters to their names on the wire, where these differ. The other fields use the parameters' own names.
	As map[string]string `json:"as,omitempty"`
	// Secrets are the names of the secrets that the request carries; nil means all of the plugin.
	Secrets []string `json:"secrets,omitzero"`
}

// Styles of a parameter whose value is a list or an object. "" is [StyleComma] in a header, else [StyleRepeat]; the
// others are for the query.
const (
	StyleRepeat = "repeat" // ids=1&ids=2
	StyleComma  = "comma"  // ids=1,2
	StyleSpace  = "space"  // ids=1%202
	StylePipe   = "pipe"   // ids=1|2
	StyleDeep   = "deep"   // at[from]=1&at[to]=2
)

// Placed is a parameter in the query, a header or a cookie. As JSON it is its name, or an object with more than that.
type Placed struct {
	Name     string `json:"name"`
	Style    string `json:"style,omitempty"`
	Reserved bool   `json:"reserved,omitempty"` // in the query, reserved characters of URLs are not escaped
}

// UnmarshalJSON reads a string or an object.
func (p *Placed) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &p.Name)
	}
	return json.Unmarshal(data, (*plainPlaced)(p))
}

// MarshalJSON writes a string if there is only a name.
func (p Placed) MarshalJSON() ([]byte, error) {
	if p == (Placed{Name: p.Name}) {
		return json.Marshal(p.Name)
	}
	return json.Marshal(plainPlaced(p))
}

type plainPlaced Placed

// StatusExits are the exit codes of every tool of kind http. The status of the response decides which one applies.
var StatusExits = []ExitCode{
	{Code: 10, Name: "unauthorized", Meaning: "The API wants a credential, or refuses the one that was sent (401)"},
	{Code: 11, Name: "forbidden", Meaning: "The credential does not permit this call (403)", Retry: "never"},
	{Code: 12, Name: "not_found", Meaning: "There is no such thing (404, 410)", Retry: "fix_input"},
	{Code: 13, Name: "conflict", Meaning: "The state of the thing does not permit this call (409, 412, 423)"},
	{Code: 14, Name: "rejected", Meaning: "The API refuses the values (400, 422 or another 4xx)", Retry: "fix_input"},
	{Code: 15, Name: "rate_limited", Meaning: "Too many requests (429)", Retry: "backoff"},
	{Code: 16, Name: "server_error", Meaning: "The API failed (5xx)", Retry: "backoff"},
}

// StatusExit returns the exit code in [StatusExits] for the status of a response, or nil for a status that is not an
// error.
func StatusExit(status int) *ExitCode {
	code := map[int]int{401: 10, 403: 11, 404: 12, 410: 12, 409: 13, 412: 13, 423: 13, 429: 15}[status]
	switch {
	case code == 0 && status >= 500:
		code = 16
	case code == 0 && status >= 400:
		code = 14
	}
	return lists.Find(StatusExits, func(e *ExitCode) bool { return e.Code == code })
}

// PathParameter matches a parameter in [Binding.Path]. The groups are its operator, its name and its asterisk.
var PathParameter = lazy.Pattern(`\{([.;]?)([^{}]+?)(\*?)\}`)

// checkHTTP checks plugins of kind http: each of their tools must have a binding, and no other plugin may have one.
func (c *checker) checkHTTP() {
	isHTTP := c.m.Kind == KindHTTP
	switch {
	case isHTTP && c.m.HTTP == nil:
		c.add("/http", `a plugin of kind http says where its API is: {"base": "https://api.example.com"}`)
	case !isHTTP && c.m.HTTP != nil:
		c.add("/http", "only a plugin of kind http has it; this one is of kind %s", c.m.Kind)
	case isHTTP:
		c.checkBase("/http/base", c.m.HTTP.Base)
	}
	if c.m.Source != nil && !isHTTP {
		c.add("/source", "only a derived manifest (kind http) has a source; this one is of kind %s", c.m.Kind)
	}
	for i := range c.m.Tools {
		at, t := fmt.Sprintf("/tools/%d/http", i), &c.m.Tools[i]
		switch {
		case isHTTP && t.HTTP == nil:
			c.add(at, "a tool of a plugin of kind http says which request it is: "+
				`{"method": "GET", "path": "/items/{id}"}`)
		case !isHTTP && t.HTTP != nil:
			c.add(at, "only a tool of a plugin of kind http has it; this plugin is of kind %s", c.m.Kind)
		case isHTTP:
			c.checkBinding(at, t)
		}
	}
}

func (c *checker) checkBase(at, base string) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		c.add(at, "%q is not the URL of an API, such as https://api.example.com/v1", base)
		return
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(base, "/") ||
		slices.Contains(strings.Split(u.EscapedPath(), "/"), "..") {
		c.add(at, "%q has a user, a query, a fragment, \"..\" or a slash at its end; remove it", base)
	}
}

func (c *checker) checkBinding(at string, t *Tool) {
	b, names := t.HTTP, readNode(t.Params).object().at("properties").names()
	use := func(pointer, name string) {
		if !slices.Contains(names, name) {
			c.add(at+pointer, "%q is not a parameter of the tool", name)
		}
	}
	if b.Base != "" {
		c.checkBase(at+"/base", b.Base)
	}
	for i, name := range b.Secrets {
		if !slices.ContainsFunc(c.m.Capabilities.Secrets, func(s SecretCapability) bool { return s.Name == name }) {
			c.add(fmt.Sprintf("%s/secrets/%d", at, i), "%q is not a secret of the plugin", name)
		}
	}
	for _, match := range PathParameter().FindAllStringSubmatch(b.Path, -1) {
		use("/path", match[2])
	}
	for i, all := range [][]Placed{b.Query, b.Header, b.Cookie} {
		for j, p := range all {
			use(fmt.Sprintf("/%s/%d", []string{"query", "header", "cookie"}[i], j), p.Name)
		}
	}
	for name := range b.As {
		use("/as", name)
	}
	if b.Whole != "" {
		use("/whole", b.Whole)
	}
	if strings.HasPrefix(b.Body, "raw:") && b.Whole == "" {
		c.add(at+"/body", "a raw body is the value of one parameter: whole names it")
	}
	if b.Body == "" && b.Whole != "" {
		c.add(at+"/whole", "a request with a body says how it is written: body is json, form, multipart or raw:TYPE")
	}
}
