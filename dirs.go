package parley

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
)

// Dirs are the folders of a host.
type Dirs struct {
	Config string // config.toml, policy.toml, grants.toml, trusted.keys
	Data   string // installed plugins and secrets
	State  string // approvals, traces, the audit log, sessions
	Cache  string // compiled plugins and the search index; can be removed at any time
	Run    string // sockets and profiles of open browsers
}

// FindDirs returns the folders under home, or under PARLEY_HOME if home is "". Without both it returns the folders of
// the user: $XDG_CONFIG_HOME/parley and the like, and on Windows the local application data. All are absolute. If
// PARLEY_HOME is relative, or the home folder of the user is unknown, nothing can be opened in them, and [Dirs.Check]
// says so.
func FindDirs(home string, env func(string) string) Dirs {
	if own := env("PARLEY_HOME"); home == "" && own != "" {
		if home = own; !filepath.IsAbs(own) {
			return relative
		}
	}
	if home != "" {
		if absolute, err := filepath.Abs(home); err == nil {
			return dirsUnder(absolute)
		}
		return nowhere
	}
	if runtime.GOOS == "windows" {
		if base, err := os.UserCacheDir(); err == nil && filepath.IsAbs(base) {
			return dirsUnder(filepath.Join(base, "parley"))
		}
	}
	known := true
	xdg := func(variable string, fallback ...string) string {
		if v := env(variable); filepath.IsAbs(v) {
			return filepath.Join(v, "parley")
		}
		userHome := protect.UserHome(env)
		known = known && userHome != ""
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
	if !known {
		return nowhere
	}
	return d
}

// Folders that do not exist and cannot be made: there is no home folder, or PARLEY_HOME is relative.
var (
	nowhere  = dirsUnder(filepath.Join(os.DevNull, "parley"))
	relative = dirsUnder(filepath.Join(os.DevNull, "relative"))
)

// Known reports whether the folders are known: PARLEY_HOME is absolute, or there is a home folder.
func (d Dirs) Known() bool { return d != nowhere && d != relative }

// Check returns a config_error if the folders are not known, or if other users could have put files into one: it
// belongs to one of them, or everybody can write to it.
func (d Dirs) Check() error {
	if !d.Known() {
		why := fmt.Sprintf("HOME is not an absolute path, and the user %d has no home folder in the data base of users",
			os.Geteuid())
		if d == relative {
			why = "PARLEY_HOME is not an absolute path, so it would mean another folder elsewhere"
		}
		return host.Errorf(host.ConfigError, "the folders of parley are not known: %s", why).
			WithNext("set PARLEY_HOME to a folder for all files of parley, by its absolute path")
	}
	for _, own := range d.own() {
		if info, err := os.Stat(own.Path); err != nil || !info.IsDir() {
			continue // nothing is read from it
		}
		if err := protect.CheckFolder(own.Path); err != nil {
			return &host.Error{Code: host.ConfigError, Cause: err, Message: "the " + own.Name + " folder: " + err.Error()}
		}
	}
	return nil
}

// Private returns prefixes of the paths that nobody on another machine should see.
func (d Dirs) Private() []string {
	self, _ := os.Executable()
	return []string{d.Config, d.Data, d.State, d.Cache, d.Run, self, protect.UserHome(os.Getenv),
		filepath.Join(os.TempDir(), "parley-")}
}

func dirsUnder(base string) Dirs {
	in := func(name string) string { return filepath.Join(base, name) }
	return Dirs{Config: in("config"), Data: in("data"), State: in("state"), Cache: in("cache"), Run: in("run")}
}

// own returns the folders, and the folders in them that have code, records or secrets, because a link or a mount can
// put one of these elsewhere.
func (d Dirs) own() []protect.Folder {
	folders := []protect.Folder{
		{Name: "config", Path: d.Config, Links: true}, {Name: "data", Path: d.Data}, {Name: "state", Path: d.State},
		{Name: "cache", Path: d.Cache}, {Name: "run", Path: d.Run},
	}
	for _, in := range []struct {
		folder string
		names  []string
	}{
		{d.Data, []string{"plugins", "secrets", "admissions", "docs", "sdk"}},
		{d.State, []string{"approvals", "audit", "traces", "sessions", "browser", "model", "slots"}},
		{d.Cache, []string{"wasm", "search", "protocol", "downloads"}},
	} {
		for _, name := range in.names {
			folders = append(folders, protect.Folder{Name: name, Path: filepath.Join(in.folder, name),
				Links: name == "secrets"})
		}
	}
	return folders
}
