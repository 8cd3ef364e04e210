package protect

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// UserHome returns the home folder of the user: what HOME says, or else the user's entry in the data base of users. It
// is absolute, or "" if neither names one.
func UserHome(env func(string) string) string {
	if home := env(homeVariable()); filepath.IsAbs(home) {
		return home
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return ""
}

// HoldsHome reports whether a folder is the home folder of the user, or holds it.
func HoldsHome(folder string, env func(string) string) bool {
	return inFolder(UserHome(env), folder)
}

func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// DockerFolder returns the folder of Docker's configuration, or "" if there is none.
func DockerFolder(env func(string) string) string {
	if folder := env("DOCKER_CONFIG"); filepath.IsAbs(folder) {
		return folder
	}
	if home := UserHome(env); home != "" {
		return filepath.Join(home, ".docker")
	}
	return ""
}

// CleanEnvironment makes the variables of this process name absolute folders only, so that nothing in the working
// folder is opened because of a variable, neither here nor by a program that this process starts. It replaces a
// relative HOME by the user's home folder, and removes other relative values. PARLEY_HOME stays: a relative one opens
// no folder.
func CleanEnvironment() {
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"XDG_RUNTIME_DIR", "TMPDIR", "DOCKER_CONFIG", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if v := os.Getenv(name); v != "" && !filepath.IsAbs(v) {
			_ = os.Unsetenv(name)
		}
	}
	if home := os.Getenv(homeVariable()); !filepath.IsAbs(home) {
		_ = os.Unsetenv(homeVariable())
		if home = UserHome(os.Getenv); home != "" {
			_ = os.Setenv(homeVariable(), home)
		}
	}
	folders := filepath.SplitList(os.Getenv("PATH"))
	if absolute := slices.DeleteFunc(slices.Clone(folders), func(f string) bool { return !filepath.IsAbs(f) }); len(
		absolute) < len(folders) {
		_ = os.Setenv("PATH", strings.Join(absolute, string(filepath.ListSeparator)))
	}
}
