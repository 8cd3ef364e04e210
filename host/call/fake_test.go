package call_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/outbound"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/spelling"
)

// shop is the manifest of the fake plugin that most tests call.
const shop = `{
  "manifest": 1, "name": "shop", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Keep a small shop"},
  "groups": [{"name": "order", "docs": {"brief": "Orders of customers"}}],
  "exit_codes": [{"code": 10, "name": "sold_out", "meaning": "There is none left"}],
  "capabilities": {"fs": [{"path": "/data", "mode": "ro", "why": "prices"}], "clock": {}},
  "limits": {"timeout_ms": 5000},
  "tools": [
    {"name": "add", "docs": {"brief": "Add an article", "standard": "The article can be ordered at once.", "full": "The article can be ordered at once, by anybody."}, "effect": "write",
     "params": {"type": "object", "additionalProperties": false, "required": ["title"], "properties": {
       "title": {"type": "string", "minLength": 1, "description": "Name of the article."},
       "count": {"type": "integer", "minimum": 1, "maximum": 99, "default": 3, "description": "How many there are."},
       "price": {"type": "number"}, "fresh": {"type": "boolean", "default": true},
       "tags": {"type": "array", "items": {"type": "string"}}, "size": {"type": "string", "enum": ["small", "medium", "large"]},
       "extra": {"type": "object", "properties": {"depth": {"type": "integer"}}}, "code": {"type": ["string", "integer"]}}},
     "returns": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
     "examples": [{"title": "One", "params": {"title": "tea", "count": 5}, "result": {"id": 1}}],
     "exit_codes": ["sold_out"], "tasks": ["sell something new"]},
    {"name": "echo", "docs": {"brief": "Say it again"}, "effect": "read", "params": {"type": "object"}, "tasks": ["repeat words"]},
    {"name": "order.list", "group": "order", "docs": {"brief": "List orders"}, "effect": "read", "params": {"type": "object"}},
    {"name": "order.cancel", "group": "order", "docs": {"brief": "Cancel an order"}, "effect": "destructive",
     "params": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
    {"name": "order.slow", "group": "order", "docs": {"brief": "Wait until it is over"}, "effect": "read", "params": {"type": "object"}}
  ]
}`

type handler func(context.Context, *host.Request) (*job.Result, error)

// fake is a provider made of a manifest and functions.
type fake struct {
	info     host.Info
	manifest *manifest.Manifest
	handlers map[string]handler
	features host.Features

	mu      sync.Mutex
	calls   []*host.Request
	lookUps int // of tools
}

// newFake returns a fake whose tools without a handler return their parameters; order.slow waits for its context.
func newFake(t testing.TB, text string, handlers map[string]handler) *fake {
	t.Helper()
	m, err := manifest.Load([]byte(text))
	if err == nil && m.Kind != manifest.KindExtism { // which no file has: its provider makes the manifest
		m, err = manifest.Parse([]byte(text), "0.1.0")
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]handler{
		"add": func(context.Context, *host.Request) (*job.Result, error) {
			return &job.Result{Data: json.RawMessage(`{"id":1}`)}, nil
		},
		"order.slow": func(ctx context.Context, _ *host.Request) (*job.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	for name, h := range handlers {
		all[name] = h
	}
	return &fake{
		info: host.Info{Name: m.Name, Version: m.Version, Kind: m.Kind, Brief: m.Docs.Brief, Groups: len(m.Groups),
			Tools: len(m.Tools), Digest: "sha256:" + m.Name},
		manifest: m, handlers: all,
	}
}

// builtin returns the fake as a built-in plugin.
func (f *fake) builtin() *fake {
	f.info.Kind, f.info.Digest, f.manifest.Kind = manifest.KindBuiltin, "", manifest.KindBuiltin
	return f
}

func (f *fake) Info() host.Info { return f.info }

func (f *fake) Manifest() (*manifest.Manifest, error) { return f.manifest, nil }

func (f *fake) Tool(name string) (*manifest.Tool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookUps++
	return f.manifest.Tool(name), nil
}

func (f *fake) Segment() ([]byte, error) {
	return segment.Build(segment.Plugin{Name: f.info.Name}, segment.DocsOf(f.manifest)), nil
}

func (f *fake) Groups() ([]host.GroupLine, error) { return host.GroupsOf(f.manifest), nil }

func (f *fake) Lines(group string) ([]host.Line, error) { return host.LinesOf(f.manifest, group), nil }

func (f *fake) Names() ([]string, error) { return host.NamesOf(f.manifest), nil }

func (f *fake) Features() host.Features { return f.features }

func (f *fake) Invoke(ctx context.Context, r *host.Request) (*job.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, r)
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if h := f.handlers[r.Tool]; h != nil {
		return h(ctx, r)
	}
	return &job.Result{Data: r.Params}, nil
}

// requests returns the requests so far.
func (f *fake) requests() []*host.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// policy is a function that implements host.Policy.
type policy func(host.Ask) (host.Decision, error)

func (p policy) Decide(_ context.Context, a host.Ask) (host.Decision, error) { return p(a) }

// allow allows every call, with no grant.
var allow = policy(func(host.Ask) (host.Decision, error) { return host.Decision{Verdict: host.Allow}, nil })

// recorder stores events.
type recorder struct {
	mu     sync.Mutex
	events []host.Event
}

func (r *recorder) Record(e host.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) all() []host.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *recorder) last(t testing.TB) host.Event {
	t.Helper()
	events := r.all()
	if len(events) == 0 {
		t.Fatal("nothing was recorded")
	}
	return events[len(events)-1]
}

func catalogOf(t testing.TB, providers ...host.Provider) *host.Catalog {
	t.Helper()
	c, err := host.NewCatalog(providers...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newHost makes a host over providers in which everything is allowed unless cfg says otherwise.
func newHost(t testing.TB, cfg call.Config, providers ...host.Provider) *call.Host {
	t.Helper()
	cfg.Catalog = catalogOf(t, providers...)
	if cfg.Policy == nil {
		cfg.Policy = allow
	}
	h, err := call.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// makeCall runs a tool as cli.
func makeCall(t testing.TB, h *call.Host, name, params string) *host.Answer {
	t.Helper()
	a, _ := h.Call(t.Context(), host.Call{Name: name, Params: json.RawMessage(params), Principal: cli})
	return a
}

// failsWith ends the test unless an answer is an error with this code.
func failsWith(t testing.TB, a *host.Answer, code host.Code) *host.Error {
	t.Helper()
	if a.Err == nil || a.Err.Code != code {
		t.Fatalf("%s: got %s, %v; expected %s", a.Tool, a.Data, a.Err, code)
	}
	if a.Data != nil {
		t.Errorf("%s: data %s beside an error", a.Tool, a.Data)
	}
	if o := a.Err.Object(); o.ExitCode != a.Err.ExitCode() {
		t.Errorf("%s: the error object is %+v", a.Tool, o)
	}
	return a.Err
}

func hasStep(steps []step.Step, want string) bool {
	return slices.ContainsFunc(steps, func(s step.Step) bool { return s.String() == want })
}

func names(list []spelling.Near) string {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// callTool calls a tool as a plugin does. Options are JSON; "" means none.
func callTool(
	ctx context.Context, r *host.Request, tool string, params json.RawMessage, options string,
) (*job.Result, error) {
	return ask(ctx, r, job.AskTool, map[string]any{"tool": tool, "params": params, "options": json.RawMessage(options)})
}

// readSecret reads a secret as a plugin does.
func readSecret(ctx context.Context, r *host.Request, name string) (value string, err error) {
	result, err := ask(ctx, r, job.AskSecret, map[string]any{"name": name})
	if err != nil {
		return "", err
	}
	return value, json.Unmarshal(result.Data, &value)
}

// sendHTTP sends a request as a plugin does.
func sendHTTP(ctx context.Context, r *host.Request, method, url string) (*outbound.Response, error) {
	result, err := ask(ctx, r, job.AskHTTP, map[string]any{"method": method, "url": url})
	if err != nil {
		return nil, err
	}
	var response struct {
		Status  int
		Headers [][2]string
		Body    string
	}
	err = json.Unmarshal(result.Data, &response)
	return &outbound.Response{Status: response.Status, Headers: response.Headers, Body: []byte(response.Body)}, err
}

func ask(ctx context.Context, r *host.Request, function string, argument map[string]any) (*job.Result, error) {
	for name, value := range argument {
		if raw, ok := value.(json.RawMessage); ok && len(raw) == 0 {
			delete(argument, name)
		}
	}
	raw, err := json.Marshal(argument)
	if err != nil {
		return nil, err
	}
	return r.Ask(ctx, function, raw)
}

// cli is who calls in most tests.
var cli = caller.Principal{Name: "cli"}

// cliIn is cli in a session.
func cliIn(session string) caller.Principal {
	return caller.Principal{Name: "cli", Session: caller.Session{Name: session}}
}

// mayCall asks [job.AskMayCall], as a provider does.
func mayCall(ctx context.Context, r *host.Request, tool string) bool {
	may, err := host.AskFor[bool](ctx, r, job.AskMayCall, job.ToolArgument{Tool: tool})
	return err == nil && may
}

// isLast asks [job.AskLast].
func isLast(ctx context.Context, r *host.Request, record json.RawMessage) bool {
	last, err := host.AskFor[bool](ctx, r, job.AskLast, record)
	return err != nil || last
}

// boundSecret asks [job.AskBoundSecret].
func boundSecret(ctx context.Context, r *host.Request, name string) (job.BoundSecret, error) {
	return host.AskFor[job.BoundSecret](ctx, r, job.AskBoundSecret, job.NameArgument{Name: name})
}

// askScript asks [job.AskScript] for the script "page".
func askScript(ctx context.Context, r *host.Request, text bool) (job.Script, error) {
	return host.AskFor[job.Script](ctx, r, job.AskScript, job.ScriptArgument{Name: "page", Text: text})
}
