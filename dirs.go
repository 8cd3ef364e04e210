package parley

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/parley-tools/parley/host"
)

// Dirs are the folders of a host.
type Dirs struct {
	Config string // config.toml, policy.toml, grants.toml, trusted.keys
	Data   string // installed plugins and secrets
	State  string // traces, the audit log, sessions
	Cache  string // compiled plugins and the search index; can be removed at any time
	Run    string // sockets and profiles of open browsers
}

// FindDirs returns the folders under home, or under PARLEY_HOME where home is "". Without both they are those of the
// user: $XDG_CONFIG_HOME/parley and the like, and on Windows the local application data.
func FindDirs(home string, env func(string) string) Dirs {
	if home == "" {
		home = env("PARLEY_HOME")
	}
	if home != "" {
		if absolute, err := filepath.Abs(home); err == nil {
			home = absolute
		}
		return dirsUnder(home)
	}
	if runtime.GOOS == "windows" {
		if base, err := os.UserCacheDir(); err == nil {
			return dirsUnder(filepath.Join(base, "parley"))
		}
	}
	userHome, _ := os.UserHomeDir()
	xdg := func(variable string, fallback ...string) string {
		if v := env(variable); filepath.IsAbs(v) {
			return filepath.Join(v, "parley")
		}
		return filepath.Join(append(append([]string{userHome}, fallback...), "parley")...)
	}
	d := Dirs{
		Config: xdg("XDG_CONFIG_HOME", ".config"),
		Data:   xdg("XDG_DATA_HOME", ".local", "share"),
		State:  xdg("XDG_STATE_HOME", ".local", "state"),
		Cache:  xdg("XDG_CACHE_HOME", ".cache"),
	}
	d.Run = filepath.Join(d.State, "run")
	if v := env("XDG_RUNTIME_DIR"); filepath.IsAbs(v) {
		d.Run = filepath.Join(v, "parley")
	}
	return d
}

func dirsUnder(base string) Dirs {
	in := func(name string) string { return filepath.Join(base, name) }
	return Dirs{Config: in("config"), Data: in("data"), State: in("state"), Cache: in("cache"), Run: in("run")}
}

// own returns the folders, and those in them whose files decide what runs.
func (d Dirs) own() []host.OwnFolder {
	return []host.OwnFolder{
		{Name: "config", Path: d.Config, Links: true}, {Name: "data", Path: d.Data}, {Name: "state", Path: d.State},
		{Name: "cache", Path: d.Cache}, {Name: "run", Path: d.Run},
		{Name: "secrets", Path: filepath.Join(d.Data, "secrets"), Links: true},
		{Name: "plugins", Path: filepath.Join(d.Data, "plugins")},
		{Name: "audit", Path: filepath.Join(d.State, "audit")},
	}
}
