// Package host gathers plugins into one catalog and runs every call through one path: look up, mend
// and validate, ask the policy, invoke, check the result, record.
package host

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/manifest"
)

// Provider is one plugin as the catalog holds it: CDP, a wasm plugin, later a remote host.
//
// Everything but Invoke is discovery: it must not start an engine, a browser or a network connection,
// must be safe for concurrent use, and must build no more than what was asked for. Tool names are
// local here ("Network.getCookies", "hash"); only the catalog knows qualified ones.
type Provider interface {
	// Info is cheap enough to be called for every plugin at every start.
	Info() Info
	// Manifest returns what concerns the plugin as a whole. Its Tools may be empty: use Tool.
	Manifest() (*manifest.Manifest, error)
	// Lines returns one line for each tool of a group in listing order; "" means the tools without a group.
	Lines(group string) ([]Line, error)
	// Groups returns the groups with their counts, in listing order.
	Groups() ([]GroupLine, error)
	// Names returns the names of all tools, sorted.
	Names() ([]string, error)
	// Tool returns one tool in full, found without regard to case, or nil if there is none.
	Tool(name string) (*manifest.Tool, error)
	// Segment returns the search segment that BuildSegment made for this plugin.
	Segment() ([]byte, error)
	// Invoke runs a call that has been validated and allowed. It ends when ctx ends. Errors are *Error;
	// any other error is reported as internal.
	Invoke(ctx context.Context, r *Request) (*Result, error)
}

// Info is what a plugin shows in the list of all plugins.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Kind    string `json:"kind"` // manifest.KindParley, KindWASI, KindMCP or KindBuiltin
	Brief   string `json:"brief"`
	Groups  int    `json:"groups"`
	Tools   int    `json:"tools"`
	Digest  string `json:"-"` // "sha256:…" over wasm and manifest; "" for what is compiled in
}

// Line is a tool in a list: its first tier. Name is local in a provider and qualified in an answer.
type Line struct {
	Name         string `json:"name"`
	Signature    string `json:"signature"`
	Brief        string `json:"brief"`
	Effect       string `json:"effect"`
	Deprecated   bool   `json:"deprecated,omitempty"`
	Experimental bool   `json:"experimental,omitempty"`
}

// Bare is the name of a tool within its group: what stands after the last dot.
func Bare(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// GroupLine is a group in a list.
type GroupLine struct {
	Name   string `json:"name"`
	Brief  string `json:"brief"`
	Tools  int    `json:"tools"`
	Events int    `json:"events"`
}

// EventLine is an event in a group's list.
type EventLine struct {
	Name  string `json:"name"`
	Brief string `json:"brief"`
}

// Glossary is a provider that also documents things that cannot be called: events and types.
type Glossary interface {
	// Events returns the events of a group in listing order.
	Events(group string) ([]EventLine, error)
	// Entry returns an event or a type by its local name, or nil. Its Params are the properties it has.
	Entry(name string) (*Entry, error)
}

// Entry documents an event or a type in the form of a tool.
type Entry struct {
	Kind string // "event" or "type"
	Tool manifest.Tool
}

// Surveyor is a provider that can say how much it covers, for `--list --json`.
type Surveyor interface {
	Coverage() (any, error)
}

// Preparer is a provider whose first call needs work that must not count against the time of that call, such as compiling.
type Preparer interface {
	Prepare(ctx context.Context) error
}

// Opener is a provider whose tools work on something that must be open, such as a browser.
type Opener interface {
	// MissingOpen returns the step that opens what a tool needs, or nil where nothing is missing. It starts nothing.
	MissingOpen(tool string) *Step
}

// Streamer is a provider whose tool can emit records before it ends.
type Streamer interface {
	// Stream is Invoke for a call that emits records through r.Emit.
	Stream(ctx context.Context, r *Request) (*Result, error)
}

// Request is one call on its way to a provider: validated, with defaults, allowed.
type Request struct {
	Tool    string          // local name, in the spelling of the manifest
	Def     *manifest.Tool  // its definition
	Params  json.RawMessage // an object
	Caller  string          // "cli", "mcp:CLIENT" or "plugin:NAME"
	Session string          // "" without one
	CallID  string
	Grant   Grant
	// CallerGrant is what the plugin that calls was granted for the call that it makes this one in; zero where no plugin calls.
	CallerGrant Grant
	// CallerDigest is which version of that plugin calls, as in Info; "" where no plugin calls.
	CallerDigest string
	Limits       Limits
	Options      Options

	// Settings is what the operator set for the plugin: an object, or nil.
	Settings json.RawMessage
	// Progress and Log may be nil. What they are given is cleaned by whoever shows it.
	Progress func(done, total float64, message string)
	Log      func(level int, message string) // 0 debug, 1 info, 2 warn, 3 error
	// Emit takes one record of a stream; an error means that nobody reads any more. Nil unless streaming.
	Emit func(record json.RawMessage) error
	// Started is called once a stream can miss nothing any more. It may be nil.
	Started func()
	// Until is asked of each record that could be the last of a stream, and the first true is. Nil: any such record is.
	Until func(record json.RawMessage) bool
	// Out takes the result as JSON text, piece by piece, where it is too large to be held; the Result then says how much
	// was written, and has no Data. Nil: the result must be held.
	Out io.Writer
	// Drain asks that the stream of bytes that the result names is read to its end into Out.
	Drain bool
	// Isolate is "process" for a call that must run in a process of its own.
	Isolate string

	// CallTool runs a tool of another plugin in this call's name. It goes through the whole path of Call.
	CallTool func(ctx context.Context, tool string, params json.RawMessage, o Options) (*Result, error)
	// HTTP sends a request within the grant; what it brings back holds no secret that the guest may not read.
	HTTP func(ctx context.Context, r *HTTPRequest) (*HTTPResponse, error)
	// ReadSecret gives a secret that the grant lets the guest read.
	ReadSecret func(ctx context.Context, name string) (string, error)
	// RecordUse notes what a right was used for, in the words of Event.Uses.
	RecordUse func(what string)
}

// Options are what a caller may say about one call, the same for every caller.
type Options struct {
	Timeout  time.Duration // 0: the tool's or the policy's
	MaxBytes int           // 0: no bound on what is shown
	Browser  string        // "": the default browser
	Target   string        // "": the current target
	DryRun   bool
	// SendAnyway skips validation where the provider's data may be older than what it talks to.
	SendAnyway bool
	// OnDialog says what becomes of a JavaScript dialog: accept, dismiss or fail (default).
	OnDialog string
	// Isolate is "process" for a call that shall run in a process of its own also where the policy does not say so. Plugins and
	// files cannot set it.
	Isolate string
}

// Limits bound one call of a wasm plugin. Zero means the default that host/wasm documents.
type Limits struct {
	MemoryMiB       int
	Timeout         time.Duration
	OutputBytes     int
	LogBytes        int
	HostCalls       int // of call_tool, http_request and read_secret together
	OpenFiles       int // at one time
	FilesCreated    int
	BytesWritten    int // to granted folders
	ConcurrentCalls int // of the plugin in one host
}

// Result is what a tool returned.
type Result struct {
	Data     json.RawMessage
	Content  []Content // beside Data: what a client shows itself
	Warnings []string
	Written  int64 // bytes that Request.Out took in the place of Data; 0 when it was not used
	Raw      bool  // what Out took is the content itself, not JSON
}

// Grant is what a call may touch: asked by the manifest and given by the policy. The zero value is nothing.
type Grant struct {
	FS      []FSGrant
	HTTP    []HTTPGrant
	Secrets []SecretGrant
	Env     map[string]string // values included
	Tools   []string          // names and globs
	Clock   bool
	Random  bool
}

// FSGrant maps a folder of this machine to the path under which the guest sees it.
type FSGrant struct {
	Path   string // as the guest sees it
	Source string // absolute, on this machine
	Mode   string // ro or rw
}

// HTTPGrant allows methods towards one origin, or towards one host pattern.
type HTTPGrant struct {
	URL     string
	Methods []string
}

// SecretGrant lets the host use a secret where the manifest says; with Read the guest may see it. A name may stand in several.
type SecretGrant struct {
	Name   string
	Read   bool
	URL    string // origin of the requests that it is put into; "" for one that is only read
	Header string // "Authorization: Bearer {secret}"
}

// Names lists the grants one word each, as `--dry-run` and the audit show them: "fs:ro:/srv/data=/data".
func (g Grant) Names() []string {
	names := []string{}
	for _, f := range g.FS {
		names = append(names, "fs:"+f.Mode+":"+f.Source+"="+f.Path)
	}
	for _, h := range g.HTTP {
		names = append(names, "http:"+joinMethods(h.Methods)+":"+h.URL)
	}
	for _, t := range g.Tools {
		names = append(names, "tool:"+t)
	}
	for _, name := range sortedKeys(g.Env) {
		names = append(names, "env:"+name)
	}
	for _, s := range g.Secrets {
		name := "secret:" + s.Name
		if s.Read {
			name = "secret:read:" + s.Name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if g.Clock {
		names = append(names, "clock")
	}
	if g.Random {
		names = append(names, "random")
	}
	return names
}

// Passer is a provider that can send what its own data does not know, for callers that ask for it with SendAnyway.
type Passer interface {
	// Pass makes a tool of an unknown name, or returns nil for what cannot be one.
	Pass(name string) *manifest.Tool
}
