// Package command does what the commands of parley do, without flags and printing: functions from options to data, and
// the types that --json prints. Any front can call them; package cli is the one of the command line.
//
// A command is a function such as
//
//	func ListPlugin(d *Deps, o ListOptions) (*PluginData, error)
//
// The options say what their zero values mean. The data is what --json prints as "data". Errors are [*host.Error]. A
// command leaves out what it does not need: [Version] takes nothing and cannot fail. [Batch] and [Listen] pass each
// reply or event to a function when it comes.
package command

import (
	"cmp"
	"context"
	"io"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/record/audit"
	"github.com/parley-tools/parley/host/wasm"
)

// Caller is the name by which the policy and the records know the calls of commands.
const Caller = "cli"

// Deps are what commands need. A front sets Env, Command, Notice and Input, and the other fields as it likes, before
// the first command runs. The methods make each part when it is first used, so a command that needs nothing, such as
// help, reads and starts nothing. A Deps is not safe for concurrent use before [Deps.Host] has returned.
type Deps struct {
	// Env looks up environment variables.
	Env func(string) string
	// Command renders a step in the form in which the user of the front takes it.
	Command func(host.Step) string
	// Offers reports whether a line may be offered as next. Nil means that every line may.
	Offers func(line string) bool
	// Notice takes what a user should know and that is not part of the data, such as a first compilation.
	Notice func(text string)
	// Input returns the standard input, whose reads end with the context.
	Input func(context.Context) io.Reader
	// Debug receives debug lines. It is called only if Debugging is set.
	Debug func(format string, args ...any)
	// Debugging turns on Debug.
	Debugging bool
	// Approver asks a person about a call. It is read at each question. Nil means that there is no approver.
	Approver host.Approver
	// ApproveChange asks the operator to approve a change of the operator's files. Nil means that nobody can be asked, so
	// changes are denied.
	ApproveChange func(ctx context.Context, c Change) (bool, error)
	// Plugins are wasm files to load beside the installed plugins.
	Plugins []string
	// Accept are rules of manifest/RULES.md that a plugin to install or to load may break although they refuse a plugin.
	Accept []string
	// Admitted takes the reports of parley.Config.Admitted. It may be nil.
	Admitted func(*parley.Admission)
	// Replace are names that plugins may take from another owner. The operator has to approve that.
	Replace []string
	// SessionName names the session of the calls. "" means PARLEY_SESSION, and without that none.
	SessionName string
	// Live replaces the embedded protocol by that of a running browser.
	Live bool
	// LiveBrowser names that browser. "" means the configured one.
	LiveBrowser string

	settings *Settings
	parley   *parley.Parley
	files    []givenFile
}

// Parley returns the host's parts. Settings that cannot be read count as not set here; commands that depend on settings
// call [Deps.Settings].
func (d *Deps) Parley() *parley.Parley {
	if d.parley == nil {
		cfg := parley.Config{
			Env: d.Env, Plugins: d.Plugins, Accept: d.Accept, Admitted: d.Admitted, Replace: d.replaceLoaded,
			Notice: d.Notice,
			Approver: host.ApproverFunc(func(ctx context.Context, q *host.Question) (host.Approval, error) {
				if d.Approver == nil {
					return host.Approval{}, host.CannotAsk("nobody can be asked here")
				}
				return d.Approver.Approve(ctx, q)
			}),
		}
		if d.Debugging {
			cfg.Debug = d.Debug
		}
		if s, err := d.Settings(); err == nil {
			cfg.Chrome, cfg.BrowserIdle, cfg.Mode = s.Chrome, s.BrowserIdle, s.DocMode
			if cfg.RunnerIdle = s.RunnerIdle; !s.Runner {
				cfg.RunnerIdle = -1
			}
			cfg.Traces = parley.Traces{
				Off: s.TracesOff, Values: s.TracesValues, KeepDays: s.TracesDays, MaxBytes: int64(s.TracesMiB) << 20,
			}
		}
		d.parley = parley.New(cfg)
	}
	return d.parley
}

// Settings returns the configuration. The error is config_error for a file or a variable with an invalid value.
func (d *Deps) Settings() (*Settings, error) {
	if d.settings == nil {
		s, err := loadSettings(d.Env, d.Dirs().Config)
		if err != nil {
			return nil, err
		}
		d.settings = s
	}
	return d.settings, nil
}

// Dirs returns the folders of the host.
func (d *Deps) Dirs() parley.Dirs { return parley.FindDirs("", d.Env) }

// SessionVariable is the environment variable that names the session of calls.
const SessionVariable = "PARLEY_SESSION"

// Session returns the session of the calls. The error is invalid_args for SessionName, or config_error for the
// variable, if that is not the name of a session.
func (d *Deps) Session() (host.Session, error) {
	if d.SessionName != "" {
		return host.Session{Name: d.SessionName}, host.CheckSessionName(d.SessionName)
	}
	name := d.Env(SessionVariable)
	if name == "" {
		return host.Session{}, nil
	}
	if err := host.CheckSessionName(name); err != nil {
		return host.Session{}, host.Errorf(host.ConfigError, "%s: %s", SessionVariable, err).
			WithNext("correct or unset " + SessionVariable)
	}
	return host.Session{Name: name}, nil
}

// Store returns the installed plugins.
func (d *Deps) Store() *wasm.Store { return d.Parley().Store() }

// Policy returns the operator's policy. The error is config_error for a policy that cannot be read.
func (d *Deps) Policy() (*policy.Policy, error) { return d.Parley().Policy() }

// AuditLog returns the audit log.
func (d *Deps) AuditLog() *audit.Log { return d.Parley().AuditLog() }

// Secrets returns the store of secret values.
func (d *Deps) Secrets() policy.Store { return d.Parley().Secrets() }

// Catalog returns all plugins. It depends on the settings.
func (d *Deps) Catalog() (*host.Catalog, error) {
	if _, err := d.Settings(); err != nil {
		return nil, err
	}
	return d.Parley().Catalog()
}

// Host returns the host, over which calls are made. It depends on the settings, the catalog, the policy and, with Live,
// a browser.
func (d *Deps) Host(ctx context.Context) (*host.Host, error) {
	s, err := d.Settings()
	if err != nil {
		return nil, err
	}
	if d.Live {
		if err := d.Parley().Chrome().Live(ctx, cmp.Or(d.LiveBrowser, s.Browser)); err != nil {
			return nil, err
		}
	}
	return d.Parley().Host()
}

// Close ends what commands have started in this process.
func (d *Deps) Close() {
	if d.parley != nil {
		_ = d.parley.Close()
	}
}

func (d *Deps) debugf(format string, args ...any) {
	if d.Debugging {
		d.Debug(format, args...)
	}
}

// NamedPath is a folder of the host, as commands list it.
type NamedPath struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Folders returns the folders of the host with their names.
func (d *Deps) Folders() []NamedPath {
	dirs := d.Dirs()
	return []NamedPath{
		{"config", dirs.Config}, {"data", dirs.Data}, {"state", dirs.State}, {"cache", dirs.Cache}, {"run", dirs.Run},
	}
}
