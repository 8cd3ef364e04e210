// Package parley gives programs a host for tools: sandboxed WebAssembly plugins that document themselves, and Chrome.
// It wires what the command line uses: installed plugins, the operator's policy, secrets, the guard of the network,
// traces, the audit log, sessions and the browser.
//
// A program that installs a plugin and calls it:
//
//	func main() {
//		parley.Child() // first: the host starts this binary again for some jobs
//		p, err := parley.Open(context.Background(), parley.Config{Home: "/var/lib/greeter"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer p.Close()
//		if _, err := p.Install(context.Background(), "hello.wasm"); err != nil {
//			log.Fatal(err)
//		}
//		answer, err := p.Call(context.Background(), "hello.greet", map[string]any{"name": "Ada"})
//		if errors.Is(err, host.InvalidArgs) {
//			log.Fatal("the parameters are wrong: ", err)
//		}
//		fmt.Println(string(answer.Data), err)
//	}
//
// Errors are [*host.Error]; errors.Is compares them with the codes of package host.
package parley

import (
	"context"
	"encoding/json"
	"strings"

	"os"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// Version is the version of the host. Releases set it.
var Version = "0.1.0"

// Config says where a host keeps its files and how it treats its callers. The zero value is a host over the files of
// the user, as the command line is, except that nobody can be asked for a confirmation.
type Config struct {
	// Home is the folder for all files of the host. "" means PARLEY_HOME, else the folders of the user.
	Home string
	// Env looks up environment variables. Nil means os.Getenv.
	Env func(string) string
	// Plugins are wasm files to load beside the installed plugins. One replaces an installed plugin of the same name.
	Plugins []string
	// Accept are rules of manifest/RULES.md that Plugins may break although they refuse a plugin.
	Accept []string
	// Admitted takes the report on each of Plugins when its build is loaded for the first time, and on every plugin that
	// is refused: [admit.Report.Errors] are the reasons. It may be nil.
	Admitted func(*admit.Report)
	// Replace is called when a file of Plugins takes the name of a plugin that belongs to another owner: "shipped" or the
	// key of a signer. The file is loaded if it returns nil. A nil Replace refuses.
	Replace func(plugin, owner string) error
	// Chrome is the browser to start. "" means the first one that is found.
	Chrome string
	// BrowserIdle is how long an unused browser stays open. Zero means 30 minutes.
	BrowserIdle time.Duration
	// RunnerIdle is how long an unused runner stays. A runner is a process for the guests of isolated calls. Zero means
	// one minute; less than zero means that there are none, and that each such call has a process of its own.
	RunnerIdle time.Duration
	// Prefer are the plugins whose tools come first among hits of a search with the same score; then come page, cdp, the
	// shipped plugins, and others.
	Prefer []string
	// Mode is the documentation mode that traces name. It may be empty.
	Mode string
	// Caller is the name by which policy and records know the calls of this program. "" means "cli".
	Caller string
	// Session is the session of the calls of this program. "" means none: nothing is remembered.
	Session string
	Traces  Traces
	// Approver asks the person at hand about calls that require confirmation or a right that is not granted. Nil means
	// that the client is asked to confirm calls over MCP. In either case parley approvals can answer, too.
	Approver approval.Approver
	// ConfirmWait is how long a call waits for an answer before it ends and has to be made again. Zero means as long as
	// Approver asks.
	ConfirmWait time.Duration
	// Fleet is what other machines add to this one.
	Fleet Fleet
	// Tracer observes calls, searches, descriptions and requests to the network. It may be nil.
	Tracer host.Tracer
	// Notice takes messages for a person that are not part of a result, such as a first compilation. It may be nil.
	Notice func(text string)
	// Debug receives debug lines. It may be nil.
	Debug func(format string, args ...any)
}

// Fleet is what other machines add to a host. The zero value adds nothing.
type Fleet struct {
	// Away finds places for the calls of plugins that the policy sends to a pool.
	Away wasm.Away
	// Published returns plugins that are not installed here and are listed all the same, and a number that changes with
	// them. A plugin of this host replaces one of the same name. It is called before every operation and waits for
	// nothing.
	Published func(*Parley) (plugins []host.Provider, version uint64)
}

// Traces says what is recorded of each call. The zero value records shapes of parameters, not their values.
type Traces struct {
	Off      bool
	Values   bool  // record the values of parameters too
	KeepDays int   // remove traces that are this many days old; zero means trace.DefaultKeepDays
	MaxBytes int64 // remove the oldest traces beyond this size; zero means trace.DefaultMaxBytes
}

// Parley is a host and its parts. It is safe for concurrent use.
type Parley struct {
	cfg       Config
	debugLine func(string) // nil without Debug
	dirs      Dirs
	trust     *signature.Trust
	admission *admit.Installer
	parts     parts
}

// Open returns a host with all its parts. The error is config_error for a policy, a list of plugins or a list of keys
// that cannot be read. Close ends what the host has started.
func Open(_ context.Context, cfg Config) (*Parley, error) {
	p := New(cfg)
	if _, err := p.Host(); err != nil {
		return nil, err
	}
	return p, nil
}

// New is [Open] for programs that need only some parts: each part is made, and fails, when it is first used.
func New(cfg Config) *Parley {
	if cfg.Env == nil {
		cfg.Env = os.Getenv
	}
	if cfg.Notice == nil {
		cfg.Notice = func(string) {}
	}
	var debugLine func(string)
	if debug := cfg.Debug; debug != nil {
		debugLine = func(line string) { debug("%s", line) }
	} else {
		cfg.Debug = func(string, ...any) {}
	}
	if cfg.Approver == nil {
		cfg.Approver = mcp.Approver{}
	}
	if cfg.Caller == "" {
		cfg.Caller = "cli"
	}
	p := &Parley{cfg: cfg, debugLine: debugLine, dirs: FindDirs(cfg.Home, cfg.Env)}
	p.trust = newTrust(p.dirs)
	p.admission = p.newInstaller()
	return p
}

// Call runs a tool by its qualified name, such as "text.hash", with parameters that encoding/json can marshal to an
// object; nil means none. The answer is never nil; it names the call even if that failed.
func (p *Parley) Call(ctx context.Context, tool string, params any) (*host.Answer, error) {
	raw := json.RawMessage("{}")
	if params != nil {
		var err error
		if raw, err = manifest.Marshal(params); err != nil {
			return &host.Answer{Tool: tool}, host.Errorf(host.InvalidArgs, "parameters: %v", err)
		}
	}
	h, err := p.Host()
	if err != nil {
		return &host.Answer{Tool: tool}, err
	}
	return h.Call(ctx, host.Call{Name: tool, Params: raw, Principal: p.principal()})
}

func (p *Parley) principal() caller.Principal {
	return caller.Principal{Name: p.cfg.Caller, Session: caller.Session{Name: p.cfg.Session}}
}

// Describe returns the documentation of a tool at a tier from 1 to 3; see Host.Describe in host/call.
func (p *Parley) Describe(ctx context.Context, tool string, tier int) (*host.Docs, error) {
	h, err := p.Host()
	if err != nil {
		return nil, err
	}
	return h.Describe(ctx, p.principal(), tool, tier)
}

// Search finds tools by what they do; see Host.Search in host/call.
func (p *Parley) Search(ctx context.Context, query string) (*search.Data, error) {
	h, err := p.Host()
	if err != nil {
		return nil, err
	}
	data, _, err := h.Search(ctx, p.principal(), search.Query{Text: query})
	return data, err
}

// List returns the plugins, one line each.
func (p *Parley) List() ([]host.Info, error) {
	catalog, err := p.Catalog()
	if err != nil {
		return nil, err
	}
	infos := []host.Info{}
	for _, provider := range catalog.Providers() {
		info := provider.Info()
		info.Brief = manifest.CleanLine(info.Brief)
		infos = append(infos, info)
	}
	return infos, nil
}

// Subscribe calls f with each event of the host until cancel is called: every call, search and describe that has
// ended, and, with Op "catalog", that plugins were installed, replaced or removed; see Host.Subscribe in host/call.
func (p *Parley) Subscribe(f func(host.Event)) (cancel func(), err error) {
	h, err := p.Host()
	if err != nil {
		return func() {}, err
	}
	return h.Subscribe(f), nil
}

// Install installs the plugin in a file or a folder. It grants nothing. The error is denied for a new version that
// breaks what the installed one promised; [admit.Installer.Prepare] says how, and can be confirmed.
func (p *Parley) Install(ctx context.Context, path string) (admit.Installed, error) {
	i, err := p.admission.Prepare(ctx, path, admit.Options{})
	if err != nil {
		return admit.Installed{}, err
	}
	return i.Commit(policy.Edit{})
}

// TryExample runs a tool as an example of its documentation: without rights, and without a record.
func (p *Parley) TryExample(ctx context.Context, tool string, params json.RawMessage) error {
	catalog, err := p.Catalog()
	if err != nil {
		return err
	}
	at, err := catalog.Find(tool)
	if err != nil {
		return err
	}
	_, name, _ := strings.Cut(at.Name(), ".")
	return p.admission.TryExample(ctx, at.Provider, name, params)
}
