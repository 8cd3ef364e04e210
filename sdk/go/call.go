package sdk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Call is one call of a tool: its caller, its rights and the methods that reach
// the host. The zero value, which has no rights, is ready for tests.
type Call struct {
	Tool        string
	ID          string
	Session     string
	Caller      string // "cli", "mcp:CLIENT", "mcp-http:CLIENT" or "plugin:NAME"
	HostVersion string
	Deadline    time.Duration   // time left when the call began; 0: no limit
	Settings    json.RawMessage // what the operator set, a JSON object; nil: nothing
	Granted     Granted

	// Host serves the methods below. When it is nil, they return a *HostError
	// with the code "denied".
	Host Host

	warnings []string
	content  []Content
}

// Granted lists the rights of a call. The zero value has none.
type Granted struct {
	FS      []Mount  `json:"fs"`
	HTTP    []string `json:"http"`
	Tools   []string `json:"tools"`
	Secrets []string `json:"secrets"`
	Env     []string `json:"env"`
	Browser bool     `json:"browser"` // tools that it calls act in the session of the caller
	Clock   bool     `json:"clock"`
	Random  bool     `json:"random"`
}

// Mount is a granted folder.
type Mount struct {
	Path string `json:"path"`
	Mode string `json:"mode"` // "ro" or "rw"
}

// Host is the program that runs the plugin. A test can implement it to replace
// Parley.
type Host interface {
	CallTool(tool string, params json.RawMessage, o Options) (json.RawMessage, error)
	HTTP(Request) (Response, error)
	ReadSecret(name string) (string, error)
	Log(level Level, message string)
	Progress(done, total float64, message string)
}

// Options of [Call.CallTool]. Zero values mean the host's defaults.
type Options struct {
	Timeout  string `json:"timeout,omitempty"` // such as "10s"
	MaxBytes int    `json:"max_bytes,omitempty"`
	Browser  string `json:"browser,omitempty"`
	Target   string `json:"target,omitempty"`
	DryRun   bool   `json:"dry_run,omitempty"`
	JQ       string `json:"jq,omitempty"`   // filters the data
	Wait     string `json:"wait,omitempty"` // if the page navigates: for load, idle or none
}

// Request is an HTTP request.
type Request struct {
	Method  string // empty: GET
	URL     string
	Headers [][2]string
	Body    []byte
}

// Response is the response to a Request. A status of 400 or more is not an error.
type Response struct {
	Status  int
	Headers [][2]string
	Body    []byte
}

// Level is the severity of a log line.
type Level int32

const (
	Debug Level = iota
	Info
	Warn
	Err
)

// Warn adds a warning to the response, formatted as by [fmt.Sprintf].
func (c *Call) Warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// Warnings returns the warnings added so far.
func (c *Call) Warnings() []string { return c.warnings }

// Log writes a line for the operator. The caller does not see it.
func (c *Call) Log(level Level, message string) {
	if c.Host != nil {
		c.Host.Log(level, message)
	}
}

// Progress reports to the caller how far the call has come. A total of 0 means
// that it is unknown.
func (c *Call) Progress(done, total float64, message string) {
	if c.Host != nil {
		c.Host.Progress(done, total, message)
	}
}

// CallTool calls another tool, named "plugin.tool", and decodes its data into
// result unless result is nil. The manifest must ask for the tool
// ([Capabilities].Tools). When the host refuses or the tool fails, the error is
// a *[HostError].
func (c *Call) CallTool(tool string, params any, o Options, result any) error {
	if c.Host == nil {
		return noHost("call_tool")
	}
	raw, err := encode(params)
	if err != nil {
		return err
	}
	data, err := c.Host.CallTool(tool, raw, o)
	if err != nil || result == nil {
		return err
	}
	if err := unmarshal(data, result); err != nil {
		return fmt.Errorf("result of %s: %w", tool, err)
	}
	return nil
}

// Run runs another tool of the plugin within this call. A tool whose [Doc].Steps names a parameter runs the steps in it
// so: the host has validated and decided each of them, and each is {"tool","params"}.
func (c *Call) Run(tool string, params json.RawMessage) (result any, err error) {
	return registered.run(c, tool, params)
}

// HTTP makes an HTTP request. The manifest must ask for its origin
// ([Capabilities].HTTP). When the host refuses or the request fails, the error
// is a *[HostError].
func (c *Call) HTTP(r Request) (Response, error) {
	if c.Host == nil {
		return Response{}, noHost("http_request")
	}
	return c.Host.HTTP(r)
}

// ReadSecret returns a secret that the manifest marks as readable. When the host
// refuses, the error is a *[HostError].
func (c *Call) ReadSecret(name string) (string, error) {
	if c.Host == nil {
		return "", noHost("read_secret")
	}
	return c.Host.ReadSecret(name)
}

func noHost(function string) error {
	return &HostError{Code: "denied", ExitCode: 82, Message: function + ": this call has no host; set Call.Host in a test"}
}

// wire is the Host that speaks the ABI. callImport calls an import by name with a
// JSON request and returns its JSON reply.
type wire struct {
	callImport func(function string, request []byte) ([]byte, error)
	log        func(level Level, message string)
	progress   func(done, total float64, message string)
}

var _ Host = wire{}

func (w wire) CallTool(tool string, params json.RawMessage, o Options) (json.RawMessage, error) {
	request := struct {
		Tool    string          `json:"tool"`
		Params  json.RawMessage `json:"params"`
		Options Options         `json:"options"`
	}{tool, params, o}
	var data json.RawMessage
	err := w.exchange("call_tool", request, &data)
	return data, err
}

func (w wire) HTTP(r Request) (Response, error) {
	request := struct {
		Method  string      `json:"method"`
		URL     string      `json:"url"`
		Headers [][2]string `json:"headers,omitempty"`
		Body    string      `json:"body,omitempty"`
		Binary  []byte      `json:"body_base64,omitempty"`
	}{Method: cmp.Or(r.Method, "GET"), URL: r.URL, Headers: r.Headers}
	if utf8.Valid(r.Body) {
		request.Body = string(r.Body)
	} else {
		request.Binary = r.Body
	}
	var reply struct {
		Status  int         `json:"status"`
		Headers [][2]string `json:"headers"`
		Body    string      `json:"body"`
		Binary  []byte      `json:"body_base64"`
	}
	if err := w.exchange("http_request", request, &reply); err != nil {
		return Response{}, err
	}
	body := reply.Binary
	if body == nil {
		body = []byte(reply.Body)
	}
	return Response{Status: reply.Status, Headers: reply.Headers, Body: body}, nil
}

func (w wire) ReadSecret(name string) (string, error) {
	request := struct {
		Name string `json:"name"`
	}{name}
	var value string
	err := w.exchange("read_secret", request, &value)
	return value, err
}

func (w wire) Log(level Level, message string) { w.log(level, message) }

func (w wire) Progress(done, total float64, message string) { w.progress(done, total, message) }

func (w wire) exchange(function string, request, result any) error {
	raw, err := encode(request)
	if err != nil {
		return err
	}
	raw, err = w.callImport(function, raw)
	if err != nil {
		return err
	}
	var reply struct {
		OK     bool            `json:"ok"`
		Result json.RawMessage `json:"result"`
		Error  *HostError      `json:"error"`
	}
	if err := unmarshal(raw, &reply); err != nil {
		return fmt.Errorf("reply of %s: %w", function, err)
	}
	if reply.Error != nil {
		return reply.Error
	}
	if !reply.OK {
		return &HostError{Code: "internal", ExitCode: 110, Message: function + " failed without an error object"}
	}
	if err := unmarshal(reply.Result, result); err != nil {
		return fmt.Errorf("result of %s: %w", function, err)
	}
	return nil
}
