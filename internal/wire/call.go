package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// Terms are the terms of a runner, which all its calls share. A runner with other terms must not run the call.
type Terms struct {
	// Code is the key of the compiled code. It depends only on the plugin's digest and the machine.
	Code string `json:"code"`
	// Rights are the names of the granted rights: of folders as the guest sees them, of variables without their values.
	Rights []string     `json:"rights"`
	Limits grant.Limits `json:"limits"`
}

// RightsOf returns the names of a grant's rights in the form of [Terms].
func RightsOf(g grant.Grant) []string {
	asked := g // the rights for requests to the host, which work on any machine; the others tie a call to this machine
	asked.FS, asked.Env = nil, nil
	names := asked.Names()
	for name := range g.Env {
		names = append(names, "env:"+name)
	}
	for _, f := range g.FS {
		names = append(names, "fs:"+f.Mode+":"+f.Path)
	}
	slices.Sort(names)
	return names
}

// Grant returns the grant for the rights: what the guest may ask its host, and the folders and variables of the
// host's machine without paths and values.
func (t *Terms) Grant() (g grant.Grant, err error) {
	for _, name := range t.Rights {
		kind, rest, _ := strings.Cut(name, ":")
		first, second, both := strings.Cut(rest, ":")
		switch {
		case kind == "http" && both:
			g.HTTP = append(g.HTTP, grant.HTTP{URL: second, Methods: strings.Split(first, ",")})
		case kind == "fs" && both:
			g.FS = append(g.FS, grant.FS{Mode: first, Path: second})
		case kind == "secret" && first == "read" && both:
			g.Secrets = append(g.Secrets, grant.Secret{Name: second, Read: true})
		case kind == "secret":
			g.Secrets = append(g.Secrets, grant.Secret{Name: rest})
		case kind == "tool":
			g.Tools = append(g.Tools, rest)
		case kind == "env":
			if g.Env == nil {
				g.Env = map[string]string{}
			}
			g.Env[rest] = ""
		case name == "browser:session":
			g.Browser = true
		case name == "clock":
			g.Clock = true
		case name == "random":
			g.Random = true
		case name == "caller":
			g.Caller = true
		default:
			return g, fmt.Errorf("unknown right %q", manifest.CleanLine(name))
		}
	}
	return g, nil
}

// Call is one call. It is plain data.
type Call struct {
	Terms
	Tool    string          `json:"tool"` // local name, in the spelling of the manifest
	Params  json.RawMessage `json:"params"`
	Caller  string          `json:"caller,omitempty"`
	Session string          `json:"session,omitempty"` // the session's id as the guest sees it
	CallID  string          `json:"call_id,omitempty"`
	// Left is the time until the deadline when the call was sent, in nanoseconds. Clocks of the two sides may differ.
	Left     time.Duration   `json:"left"`
	Options  job.Options     `json:"options"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Wants    job.Wants       `json:"wants"`
}

// Outcome is the outcome of a call: Err, or the other fields.
type Outcome struct {
	Data     json.RawMessage `json:"data,omitempty"`
	Content  []job.Content   `json:"content,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	// Err is an [Error]. It is decoded only when needed, because preparing the decoder for its type takes a tenth of the
	// time of a short process.
	Err json.RawMessage `json:"error,omitempty"`
}

// Failed returns the outcome of a call that failed.
func Failed(e *host.Error) Outcome {
	raw, err := manifest.Marshal(ErrorOf(e))
	if err != nil { // the error contains invalid JSON
		raw, _ = manifest.Marshal(ErrorOf(host.Errorf(host.Internal, "an error cannot be sent: %v", err)))
	}
	return Outcome{Err: raw}
}

// Failure returns the error of a call that failed, as [Error.Untrusted] does, or nil.
func (o *Outcome) Failure() (*host.Error, error) {
	if o.Err == nil {
		return nil, nil
	}
	var e *Error
	if err := json.Unmarshal(o.Err, &e); err != nil || e == nil {
		return nil, err
	}
	return e.Untrusted(), nil
}
