package cli

import (
	"os"
	"path/filepath"
	"runtime"
)

// dirs are the folders that Parley uses. PARLEY_HOME puts all of them under one.
type dirs struct {
	config, data, state, cache, run string
}

type namedPath struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

func (d dirs) list() []namedPath {
	return []namedPath{{"config", d.config}, {"data", d.data}, {"state", d.state}, {"cache", d.cache}, {"run", d.run}}
}

func findDirs(env func(string) string) dirs {
	if home := env("PARLEY_HOME"); home != "" {
		if absolute, err := filepath.Abs(home); err == nil {
			home = absolute
		}
		in := func(name string) string { return filepath.Join(home, name) }
		return dirs{in("config"), in("data"), in("state"), in("cache"), in("run")}
	}
	home, _ := os.UserHomeDir()
	xdg := func(variable string, fallback ...string) string {
		if v := env(variable); filepath.IsAbs(v) {
			return filepath.Join(v, "parley")
		}
		return filepath.Join(append(append([]string{home}, fallback...), "parley")...)
	}
	if runtime.GOOS == "windows" {
		if base, err := os.UserCacheDir(); err == nil {
			in := func(name string) string { return filepath.Join(base, "parley", name) }
			return dirs{in("config"), in("data"), in("state"), in("cache"), in("run")}
		}
	}
	d := dirs{
		config: xdg("XDG_CONFIG_HOME", ".config"),
		data:   xdg("XDG_DATA_HOME", ".local", "share"),
		state:  xdg("XDG_STATE_HOME", ".local", "state"),
		cache:  xdg("XDG_CACHE_HOME", ".cache"),
	}
	d.run = filepath.Join(d.state, "run")
	if v := env("XDG_RUNTIME_DIR"); filepath.IsAbs(v) {
		d.run = filepath.Join(v, "parley")
	}
	return d
}
