package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/audit"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// deps are what a command may need, each made when it is first used: `--help` makes none.
type deps struct {
	app      *App
	full     bool
	helpErr  error
	loaded   *settings
	opened   *parley.Parley
	approver func(context.Context, host.Ask, string) (bool, error) // nil: the person at the terminal
}

// open returns the host's parts. Settings that cannot be read are left to the commands that need them.
func (d *deps) open() *parley.Parley {
	if d.opened == nil {
		cfg := parley.Config{
			Env: d.app.Env, Plugins: d.app.loads, Notice: d.app.notice, Confirm: d.confirm,
		}
		if d.app.debug {
			cfg.Debug = d.app.debugf
		}
		if s, err := d.settings(); err == nil {
			cfg.Chrome, cfg.BrowserIdle, cfg.Mode = s.Chrome, s.BrowserIdle, s.DocMode
			cfg.Traces = parley.Traces{
				Off: s.TracesOff, Values: s.TracesValues, KeepDays: s.TracesDays, MaxBytes: int64(s.TracesMiB) << 20,
			}
		}
		d.opened = parley.New(cfg)
	}
	return d.opened
}

func (d *deps) settings() (*settings, error) {
	if d.loaded == nil {
		s, err := loadSettings(d.app.Env, d.dirs().Config)
		if err != nil {
			return nil, err
		}
		d.loaded = s
	}
	return d.loaded, nil
}

func (d *deps) dirs() parley.Dirs { return parley.FindDirs("", d.app.Env) }

// namedPath is a folder of the host, as commands list it.
type namedPath struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

func (d *deps) namedDirs() []namedPath {
	dirs := d.dirs()
	return []namedPath{
		{"config", dirs.Config}, {"data", dirs.Data}, {"state", dirs.State}, {"cache", dirs.Cache}, {"run", dirs.Run},
	}
}

func (d *deps) store() *wasm.Store              { return d.open().Store() }
func (d *deps) policy() (*policy.Policy, error) { return d.open().Policy() }
func (d *deps) audit() *audit.Log               { return d.open().AuditLog() }
func (d *deps) secretStore() policy.Store       { return d.open().Secrets() }

// catalog depends on the settings.
func (d *deps) catalog() (*host.Catalog, error) {
	if _, err := d.settings(); err != nil {
		return nil, err
	}
	return d.open().Catalog()
}

// host depends on the settings, the catalog and the policy.
func (d *deps) host(ctx context.Context) (*host.Host, error) {
	s, err := d.settings()
	if err != nil {
		return nil, err
	}
	if d.app.live {
		if err := d.open().Chrome().Live(ctx, cmp.Or(d.app.liveOf, s.Browser)); err != nil {
			return nil, err
		}
	}
	return d.open().Host()
}

// close ends what a command has started in this process.
func (d *deps) close() {
	if d.opened != nil {
		_ = d.opened.Close()
	}
}

func (d *deps) confirm(ctx context.Context, ask host.Ask, reason string) (bool, error) {
	if d.approver != nil {
		return d.approver(ctx, ask, reason)
	}
	return confirmOnTerminal(ctx, ask, reason)
}

// confirmOnTerminal asks the person at the controlling terminal. Without a terminal nobody can approve.
func confirmOnTerminal(ctx context.Context, ask host.Ask, reason string) (bool, error) {
	reason = manifest.CleanLine(reason)
	tty, err := openTerminal()
	if err != nil {
		return false, host.Errorf(host.Denied,
			"%s.%s requires confirmation (%s), and there is no terminal to ask on; nothing was run", ask.Plugin, ask.Tool, reason).
			WithSteps(host.OperatorStep(host.OpPolicyExplain, ask.Plugin+"."+ask.Tool))
	}
	defer tty.Close()
	fmt.Fprintf(tty, "%s wants to call %s.%s (%s). Allow it? [y/N] ", ask.Caller, ask.Plugin, ask.Tool, reason)
	return confirmed(ctx, tty)
}
