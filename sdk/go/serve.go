package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
)

// request and response are the messages that sdk/abi.md defines.
type request struct {
	Tool       string          `json:"tool"`
	Params     json.RawMessage `json:"params"`
	CallID     string          `json:"call_id"`
	Session    string          `json:"session"`
	Caller     string          `json:"caller"`
	Host       string          `json:"host"`
	DeadlineMS int64           `json:"deadline_ms"`
	Settings   json.RawMessage `json:"settings"`
	Granted    Granted         `json:"granted"`
}

type response struct {
	OK       bool            `json:"ok"`
	Result   json.RawMessage `json:"result,omitempty"`
	Content  []Content       `json:"content,omitempty"`
	Exit     int             `json:"exit,omitempty"`
	Message  string          `json:"message,omitempty"`
	Details  any             `json:"details,omitempty"`
	Invalid  []*InvalidError `json:"invalid,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
}

// serve runs one request of the host and returns the response.
func serve(p *Plugin, raw []byte, host Host) []byte {
	var q request
	if err := unmarshal(raw, &q); err != nil {
		return encodeResponse(response{Exit: 1, Message: "request: " + err.Error()})
	}
	c := &Call{
		Tool: q.Tool, ID: q.CallID, Session: q.Session, Caller: q.Caller, HostVersion: q.Host,
		Deadline: time.Duration(q.DeadlineMS) * time.Millisecond,
		Settings: q.Settings, Granted: q.Granted, Host: host,
	}
	r := p.invoke(c, q.Params)
	r.Warnings = c.warnings
	if r.OK {
		r.Content = c.content
	}
	return encodeResponse(r)
}

// invoke runs the tool that c names.
func (p *Plugin) invoke(c *Call, params json.RawMessage) (r response) {
	defer func() {
		if v := recover(); v != nil {
			r = response{Exit: 1, Message: fmt.Sprintf("panic: %v", v)}
			c.logPanic()
		}
	}()
	result, err := p.run(c, c.Tool, params)
	if err != nil {
		return p.failure(err)
	}
	raw, err := encode(result)
	if err != nil {
		return response{Exit: 1, Message: "result: " + err.Error()}
	}
	return response{OK: true, Result: raw}
}

// run runs a tool by its name.
func (p *Plugin) run(c *Call, tool string, params json.RawMessage) (result any, err error) {
	for _, t := range p.Tools {
		if t.name == tool {
			return t.run(c, params)
		}
	}
	return nil, fmt.Errorf("plugin %s has no tool %q", p.Name, tool)
}

// logPanic logs the functions that a panic went through, innermost first.
func (c *Call) logPanic() {
	var callers [20]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for f, more := frames.Next(); more && !strings.HasSuffix(f.Function, ".(*Plugin).invoke"); f, more = frames.Next() {
		if !strings.HasPrefix(f.Function, "runtime.") {
			c.Log(Err, fmt.Sprintf("panic in %s (%s:%d)", f.Function, path.Base(f.File), f.Line))
		}
	}
}

func (p *Plugin) failure(err error) response {
	if v := violations(err); v != nil {
		return response{Invalid: v}
	}
	var exit *ExitError
	// What failed in the host keeps its exit code. That a right was denied is a failure of the plugin itself.
	if host, ok := err.(*HostError); ok && host.ExitCode != 0 && host.Code != "denied" {
		return response{Exit: host.ExitCode, Message: host.Message}
	}
	if !errors.As(err, &exit) {
		return response{Exit: 1, Message: err.Error()}
	}
	for _, code := range p.ExitCodes {
		if code.Name == exit.Name {
			return response{Exit: code.Code, Message: exit.Message, Details: exit.Details}
		}
	}
	return response{Exit: 1, Message: exit.Error(), Details: exit.Details}
}

// encodeResponse encodes r. It drops details that cannot be encoded and says so
// in the message.
func encodeResponse(r response) []byte {
	result := r.Result // valid JSON, which encoding/json would scan once more
	r.Result = nil
	raw, err := encode(r)
	if err != nil {
		r.Details, result = nil, nil
		r.Message += " (details: " + err.Error() + ")"
		raw, _ = encode(r)
	}
	if result == nil {
		return raw
	}
	rest := bytes.TrimPrefix(raw, []byte(`{"ok":true`))
	return slices.Concat([]byte(`{"ok":true,"result":`), result, rest)
}

// encode is json.Marshal with the escapes that JSON requires and no others.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	raw := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if bytes.Contains(raw, []byte(`\u202`)) {
		raw = []byte(separators.Replace(string(raw)))
	}
	return raw, nil
}

// separators replaces the escapes of U+2028 and U+2029, which encoding/json always writes. An escaped backslash is a
// match of its own: the u after it begins no escape.
var separators = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// withoutNil returns the value at p with nil slices and maps made empty:
// encoding/json writes nil as null, which is not valid by an array's schema.
func withoutNil(p any) any {
	v := reflect.ValueOf(p).Elem()
	fillNil(v)
	return v.Interface()
}

func fillNil(v reflect.Value) {
	if !v.CanSet() {
		return
	}
	if _, own := v.Addr().Interface().(json.Marshaler); own {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			inner := reflect.New(v.Elem().Type()).Elem()
			inner.Set(v.Elem())
			fillNil(inner)
			v.Set(inner)
		}
	case reflect.Pointer:
		fillNil(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fillNil(v.Field(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillNil(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}
