// Package command has what all commands share: the [App] with its streams, options and parts of the host, the envelope
// and the text of results and errors, flags, completion, settings, and questions to a person.
//
// A command has three parts, in one file of the package for its kind: a struct with its options, newX, which returns
// the cobra command that fills them, and runX, which does the work and prints. The data that --json prints is a type
// beside them, made by a function from options to data, whose errors are [*host.Error].
package command

import (
	"cmp"
	"context"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/call"
)

// Note records an operator's change. The change has been made by then, so a log that cannot be written is only
// reported.
func (a *App) Note(op, subject string, details ...string) {
	if err := a.Parley().AuditLog().Note(op, subject, details...); err != nil {
		a.Notice(err.Error())
	}
}

// Caller is the name by which the policy and the records know the calls of commands.
const Caller = "cli"

// Parley returns the host's parts. Settings that cannot be read count as not set here; commands that depend on settings
// call [App.Settings].
func (a *App) Parley() *parley.Parley {
	if a.parley == nil {
		cfg := parley.Config{
			Env: a.Env, Plugins: a.Plugins, Accept: a.Accept, Notice: a.Notice,
			Admitted: func(report *admit.Report) { admitted(a, report) },
			Replace:  func(name, owner string) error { return replaceLoaded(a, name, owner) },
			Approver: host.ApproverFunc(func(ctx context.Context, q *host.Question) (host.Approval, error) {
				if a.Approver == nil {
					return host.Approval{}, host.CannotAsk("nobody can be asked here")
				}
				return a.Approver.Approve(ctx, q)
			}),
		}
		if a.Debug {
			cfg.Debug = a.Debugf
		}
		if s, err := a.Settings(); err == nil {
			cfg.Chrome, cfg.BrowserIdle, cfg.Mode = s.Chrome, s.BrowserIdle, s.DocMode
			if cfg.RunnerIdle = s.RunnerIdle; !s.Runner {
				cfg.RunnerIdle = -1
			}
			cfg.Traces = parley.Traces{
				Off: s.TracesOff, Values: s.TracesValues, KeepDays: s.TracesDays, MaxBytes: int64(s.TracesMiB) << 20,
			}
		}
		a.parley = parley.New(cfg)
	}
	return a.parley
}

// Settings returns the configuration. The error is config_error for a file or a variable with an invalid value.
func (a *App) Settings() (*Settings, error) {
	if a.settings == nil {
		s, err := loadSettings(a.Env, a.Dirs().Config)
		if err != nil {
			return nil, err
		}
		a.settings = s
	}
	return a.settings, nil
}

// Dirs returns the folders of the host.
func (a *App) Dirs() parley.Dirs { return parley.FindDirs("", a.Env) }

// SessionVariable is the environment variable that names the session of calls.
const SessionVariable = "PARLEY_SESSION"

// Session returns the session of the calls. The error is invalid_args for SessionName, or config_error for the
// variable, if that is not the name of a session.
func (a *App) Session() (host.Session, error) {
	if a.SessionName != "" {
		return host.Session{Name: a.SessionName}, host.CheckSessionName(a.SessionName)
	}
	name := a.Env(SessionVariable)
	if name == "" {
		return host.Session{}, nil
	}
	if err := host.CheckSessionName(name); err != nil {
		return host.Session{}, host.Errorf(host.ConfigError, "%s: %s", SessionVariable, err).
			WithNext("correct or unset " + SessionVariable)
	}
	return host.Session{Name: name}, nil
}

// Catalog returns all plugins. It depends on the settings.
func (a *App) Catalog() (*host.Catalog, error) {
	if _, err := a.Settings(); err != nil {
		return nil, err
	}
	return a.Parley().Catalog()
}

// Find returns what a qualified name means, in the catalog of all plugins.
func (a *App) Find(name string) (host.Address, error) {
	catalog, err := a.Catalog()
	if err != nil {
		return host.Address{}, err
	}
	return catalog.Find(name)
}

// FindIn returns what a local name stands for in a plugin; "" is the plugin itself.
func FindIn(a *App, plugin, local string) (host.Address, error) {
	catalog, err := a.Catalog()
	if err != nil {
		return host.Address{}, err
	}
	return catalog.FindIn(plugin, local)
}

// HostSession returns the host and the session of the calls.
func (a *App) HostSession(ctx context.Context) (*call.Host, host.Session, error) {
	h, err := a.Host(ctx)
	if err != nil {
		return nil, host.Session{}, err
	}
	session, err := a.Session()
	return h, session, err
}

// Host returns the host, over which calls are made. It depends on the settings, the catalog, the policy and, with Live,
// a browser.
func (a *App) Host(ctx context.Context) (*call.Host, error) {
	s, err := a.Settings()
	if err != nil {
		return nil, err
	}
	if a.Live {
		if err := a.Parley().Chrome().Live(ctx, cmp.Or(a.LiveBrowser, s.Browser)); err != nil {
			return nil, err
		}
	}
	return a.Parley().Host()
}

// Close ends what commands have started in this process.
func (a *App) Close() {
	if a.parley != nil {
		_ = a.parley.Close()
	}
}

// NamedPath is a folder of the host, as commands list it.
type NamedPath struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Folders returns the folders of the host with their names.
func Folders(app *App) []NamedPath {
	dirs := app.Dirs()
	return []NamedPath{
		{"config", dirs.Config}, {"data", dirs.Data}, {"state", dirs.State}, {"cache", dirs.Cache}, {"run", dirs.Run},
	}
}
