// Package testhome creates data folders for tests in which the shipped plugins are already compiled. Compiling them
// takes up to 7 s of CPU time each, which most tests do not need to test.
package testhome

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/gofrs/flock"
)

// New returns a data folder that is removed when the test ends.
func New(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	if err := Fill(home); err != nil {
		t.Fatal(err)
	}
	return home
}

// Fill gives a data folder the compiled code of the shipped plugins. It creates the folder if it is missing.
func Fill(home string) error {
	from, err := compiled()
	if err != nil {
		return fmt.Errorf("compile the shipped plugins for tests: %w", err)
	}
	lock := lockOf(from)
	if err := lock.RLock(); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	return filepath.WalkDir(filepath.Join(from, cache), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(home, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		if os.Link(path, to) == nil {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	})
}

// CopyProgram copies parley, as users have it except for build information, to a file. A test that builds parley itself
// in a folder of its own links it each time.
func CopyProgram(to string) error {
	home, err := compiled()
	if err != nil {
		return fmt.Errorf("build parley for tests: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(home, program))
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// LinkerFlags remove the build information of a program, so that it uses the same compiled code as a test binary, which
// has none: the compiled code depends on versions of modules.
const LinkerFlags = "-w -X runtime.modinfo="

// program is the file name of parley.
var program = map[bool]string{false: "parley", true: "parley.exe"}[runtime.GOOS == "windows"]

// cache is the folder of compiled code within a data folder.
var cache = filepath.Join("cache", "wasm")

// calls has a call of one tool of each shipped plugin, with its exit code.
var calls = []struct {
	args []string
	code int
}{
	{[]string{"text", "hash", "a"}, 0},
	{[]string{"json", "merge", "--params", `{"data":1,"patch":2}`}, 0},
	{[]string{"js", "run", "--params", `{"source":"return 1"}`}, 0},
}

// repository returns the folder of the repository that contains the test's folder.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "internal", "testhome", "testhome.go")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("testhome: the test does not run inside the repository")
		}
		dir = parent
	}
}

// lockOf returns the lock of the compiled code. Several test processes run at once: one may add to the code, and leave
// temporary files there for a time, while none reads it.
func lockOf(home string) *flock.Flock { return flock.New(filepath.Join(home, ".lock")) }

// compiled returns a data folder in bin/ of this repository, after calling each shipped plugin there.
var compiled = sync.OnceValues(func() (home string, err error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	home = filepath.Join(root, "bin", "compiled")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err
	}
	lock := lockOf(home)
	if err := lock.Lock(); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	parley := filepath.Join(home, program)
	cmd := exec.Command("go", "build", "-ldflags="+LinkerFlags, "-o", parley, "./cmd/parley")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	for _, c := range calls {
		cmd := exec.Command(parley, append(c.args, "--timeout", "10m")...) // the machine may be busy
		cmd.Env = append(os.Environ(), "PARLEY_HOME="+home, "PARLEY_RUNNER=off")
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != c.code {
			return "", fmt.Errorf("parley %v: %w\n%s", c.args, err, out)
		}
	}
	return home, nil
})
