package cli

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// planted are files of a working folder that somebody else wrote. Each is where a relative or missing variable leads.
var planted = []string{
	"config.toml", "policy.toml", "config/config.toml", "config/policy.toml", "data/plugins/lock.json", "state/named",
	"parley/config.toml", "parley/policy.toml", "parley/plugins/lock.json", ".config/parley/config.toml",
	".config/parley/policy.toml", ".config/parley/grants.toml", ".config/parley/trusted.keys", ".config/chromium/x",
	".local/share/parley/plugins/lock.json", ".local/state/parley/traces/x", ".cache/parley/wasm/x", ".docker/config.json",
	"home/.config/parley/config.toml", "home/.config/parley/policy.toml", "home/.cache/x", "run/parley/x", "tmp/x",
	"config.json", "cert.pem", "bin/chromium", "chromium", "google-chrome-stable", "go", "x.sh",
}

// foreignFolder makes a working folder with the planted files, and returns a function that returns what was opened,
// made or changed below it since the last call.
func foreignFolder(t *testing.T) (dir string, opened func() []string) {
	t.Helper()
	dir = t.TempDir()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Skip("no inotify: ", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for _, name := range planted {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\ntouch "+dir+"/started\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "parley.toml"), []byte("max_bytes = 100000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	watched := map[int32]string{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		wd, err := unix.InotifyAddWatch(fd, path,
			unix.IN_OPEN|unix.IN_CREATE|unix.IN_MODIFY|unix.IN_DELETE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM)
		watched[int32(wd)] = path
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	opened = func() []string {
		found := map[string]bool{}
		buffer := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buffer)
			if err != nil || n <= 0 {
				break
			}
			for at := 0; at < n; {
				wd := int32(binary.NativeEndian.Uint32(buffer[at:]))
				size := int(binary.NativeEndian.Uint32(buffer[at+12:]))
				name, _, _ := strings.Cut(string(buffer[at+16:at+16+size]), "\x00")
				at += 16 + size
				path := filepath.Join(watched[wd], name)
				if path != dir && path != filepath.Join(dir, "parley.toml") {
					found[strings.TrimPrefix(path, dir)] = true
				}
			}
		}
		return slices.Sorted(maps.Keys(found))
	}
	opened() // the walk
	return dir, opened
}

// TestNothingOfTheWorkingFolder records what every front opens below a working folder that somebody else filled, with
// an environment that is empty, relative or hostile: only parley.toml. The user's home folder is then that of the data
// base of users, which the test replaces in a mount namespace of its own.
func TestNothingOfTheWorkingFolder(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	home, passwd := filepath.Join(base, "home"), filepath.Join(base, "passwd")
	if err := errors.Join(os.Mkdir(home, 0o700),
		os.WriteFile(passwd, []byte("root:x:0:0::"+home+":/bin/sh\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	inside := func(dir string, env []string, args ...string) *exec.Cmd {
		words := []string{"-rm", "/bin/sh", "-c", `mount --bind "$1" /etc/passwd && shift && exec "$@"`, "sh", passwd,
			"/usr/bin/env", "-i"}
		cmd := exec.Command("unshare", append(append(words, env...), args...)...)
		cmd.Dir = dir
		return cmd
	}
	if out, err := inside(base, nil, "/bin/true").CombinedOutput(); err != nil {
		t.Skipf("no user namespaces here: %v: %s", err, out)
	}
	parley, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	path := "PATH=/usr/local/bin:/usr/bin:/bin"
	each := func(value string) (env []string) {
		for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
			"XDG_RUNTIME_DIR", "TMPDIR", "DOCKER_CONFIG", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
			env = append(env, name+"="+value)
		}
		return env
	}
	environments := map[string][]string{
		"empty": {path},
		"blank": append(each(""), path),
		"relative": {path, "HOME=home", "XDG_CONFIG_HOME=.config", "XDG_DATA_HOME=.local/share",
			"XDG_STATE_HOME=.local/state", "XDG_CACHE_HOME=.cache", "XDG_RUNTIME_DIR=run", "TMPDIR=tmp",
			"DOCKER_CONFIG=.docker", "SSL_CERT_FILE=cert.pem"},
		"hostile": append(each("."), "PATH=.:bin::/usr/local/bin:/usr/bin:/bin:"),
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"call_tool",` +
		`"arguments":{"name":"text.hash","arguments":{"text":"a"}}}}` + "\n"
	for name, env := range environments {
		dir, opened := foreignFolder(t)
		run := func(want string, args ...string) {
			t.Helper()
			cmd := inside(dir, env, append([]string{parley}, args...)...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			stdin, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if args[0] == "mcp" { // its input ends after the answers
				fmt.Fprint(stdin, hello)
			}
			stdin.Close()
			err = cmd.Wait()
			if text := out.String(); !strings.Contains(text, want) {
				t.Errorf("%s: parley %s: %v\n%s", name, strings.Join(args, " "), err, text)
			}
			if found := opened(); len(found) > 0 {
				t.Errorf("%s: parley %s touched %v", name, strings.Join(args, " "), found)
			}
		}
		run(home, "config", "list")
		run("ca978112", "text", "hash", "a") // in a runner
		run("ca978112", "text", "hash", "a", "--isolate", "call")
		run("text", "--list")
		run("records", "audit", "verify")
		run("platform", "doctor", "--authors")
		run("calls", "stats", "--json")
		run("ca978112", "mcp")
		serveOnce(t, inside(dir, env, parley, "mcp", "--http", "127.0.0.1:0", "--no-token"))
		if found := opened(); len(found) > 0 {
			t.Errorf("%s: parley mcp --http touched %v", name, found)
		}
		if !testing.Short() && name != "blank" {
			run("about:blank", "cdp", "open", "about:blank") // in a keeper
			run("", "cdp", "close", "--all")
		}
		run("", "runner", "stop")
	}
}

// serveOnce starts a server and ends it once it listens.
func serveOnce(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "http://") {
			break
		}
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait()
}
