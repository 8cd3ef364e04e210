package protect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFoldersOfTheUser checks that each folder is absolute, whatever the environment says.
func TestFoldersOfTheUser(t *testing.T) {
	absolute := t.TempDir()
	own := UserHome(func(string) string { return "" }) // of the data base of users
	for _, c := range []struct{ home, docker, wantHome, wantDocker string }{
		{absolute, "", absolute, filepath.Join(absolute, ".docker")},
		{absolute, absolute, absolute, absolute},
		{absolute, "docker", absolute, filepath.Join(absolute, ".docker")},
		{"home", "", own, filepath.Join(own, ".docker")},
		{"", "./docker", own, filepath.Join(own, ".docker")},
	} {
		env := func(name string) string {
			return map[string]string{homeVariable(): c.home, "DOCKER_CONFIG": c.docker}[name]
		}
		if got := UserHome(env); got != c.wantHome {
			t.Errorf("%+v: home %q", c, got)
		}
		if got := DockerFolder(env); got != c.wantDocker && own != "" {
			t.Errorf("%+v: folder of Docker %q", c, got)
		}
	}
}

// TestCleanEnvironment checks that no variable names a folder below the working folder but PARLEY_HOME, with which
// every command that needs a folder is refused.
func TestCleanEnvironment(t *testing.T) {
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TMPDIR",
		"DOCKER_CONFIG", "SSL_CERT_FILE", "SSL_CERT_DIR", homeVariable()}
	for _, value := range []string{"relative", ".", "../x", working} {
		for _, name := range names {
			t.Setenv(name, value)
		}
		t.Setenv("PATH", strings.Join([]string{value, working, "", "bin"}, string(filepath.ListSeparator)))
		CleanEnvironment()
		for _, name := range names {
			if got := os.Getenv(name); got != "" && !filepath.IsAbs(got) || filepath.IsAbs(value) && got != value {
				t.Errorf("%s=%s becomes %q", name, value, got)
			}
		}
		path := filepath.SplitList(os.Getenv("PATH"))
		if len(path) == 0 || slices.ContainsFunc(path, func(f string) bool { return f != working }) {
			t.Errorf("PATH becomes %q", path)
		}
	}
}
