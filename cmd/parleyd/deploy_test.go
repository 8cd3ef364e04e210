package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/internal/testhome"
)

// deploy is the folder with the files for operators.
const deploy = "../../deploy"

// build builds the service once, static as in the image.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "parleyd-*")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-ldflags=-s "+testhome.LinkerFlags, "-o", filepath.Join(dir, "parleyd"), ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the service: %w\n%s", err, out)
	}
	return filepath.Join(dir, "parleyd"), nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func built(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// program returns the path of a program, or skips the test. With CI=true nothing may be skipped.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing, and nothing may be skipped here; run make setup", name)
	}
	t.Skip(name + " is missing; make setup installs it")
	return ""
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestConfigurations checks the shipped configurations, with the lines that are comments, too.
func TestConfigurations(t *testing.T) {
	example, tokens := read(t, "parleyd.toml"), filepath.Join(t.TempDir(), "tokens")
	edit := regexp.MustCompile(`sed -i '([^']+)' /etc/parley`).FindStringSubmatch(read(t, "../docs/operators.md"))
	if edit == nil {
		t.Fatal("docs/operators.md does not edit the configuration")
	}
	documented, err := exec.Command("sed", edit[1], filepath.Join(deploy, "parleyd.toml")).Output()
	if err != nil || !strings.Contains(string(documented), "\nhosts = [\"tools.example.org\"]\n") ||
		!strings.Contains(string(documented), "\ntrusted_proxies = [") {
		t.Errorf("the edit of docs/operators.md: %v\n%s", err, documented)
	}
	write(t, tokens, "alice=0123456789abcdef\n")
	for name, text := range map[string]string{
		"the example":                example,
		"the documented edit of it":  string(documented),
		"the example with all lines": regexp.MustCompile(`(?m)^# (\S+ = |\[)`).ReplaceAllString(example, "$1"),
		"that of compose.yaml":       read(t, "compose.toml"),
	} {
		path := filepath.Join(t.TempDir(), "parleyd.toml")
		write(t, path, strings.ReplaceAll(text, "/etc/parley/tokens", tokens))
		out, err := exec.Command(built(t), "check", "--config", path).CombinedOutput()
		if strings.Contains(name, "all lines") {
			if !strings.Contains(string(out), "the certificate or its key: ") { // the first file that is missing
				t.Errorf("%s: %s", name, out)
			}
		} else if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// maxExposure is the most that systemd-analyze security may count for a unit, of 10.
const maxExposure = 2.0

// TestUnits verifies the units of systemd.
func TestUnits(t *testing.T) {
	analyze := program(t, "systemd-analyze")
	dir := t.TempDir()
	checks := [][]string{{"verify", "--man=no"}}
	threshold := fmt.Sprintf("--threshold=%d", int(maxExposure*10))
	for _, name := range []string{"parleyd.socket", "parleyd.service", "parleyd-worker.service", "nats-server.service"} {
		unit := filepath.Join(dir, name)
		write(t, unit, regexp.MustCompile(`/usr/local/bin/[a-z-]+`).ReplaceAllLiteralString(read(t, name), built(t)))
		checks[0] = append(checks[0], unit)
		if strings.HasSuffix(name, ".service") {
			checks = append(checks, []string{"security", "--offline=true", threshold, unit})
		}
	}
	for _, args := range checks {
		out, err := exec.Command(analyze, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && strings.Contains(string(out), dir) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
		if figure := regexp.MustCompile(`Overall exposure.*`).Find(out); figure != nil {
			t.Logf("figures: %s: %s", filepath.Base(args[len(args)-1]), figure)
		}
	}
}

// TestImage makes the content of the image by the steps of the Dockerfile, and runs the service in it: as process 1 and
// nobody, with a root that is read-only and has no shell. It ends on SIGTERM.
func TestImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root of a process")
	}
	unshare, image, states := program(t, "unshare"), t.TempDir(), t.TempDir()
	dockerfile := read(t, "Dockerfile")
	for _, line := range []string{"FROM scratch\n", "COPY --from=build /image /\n", "USER 65534:65534\n",
		"COPY --from=build --chown=65534:65534 /state/ /var/lib/\n"} {
		if !strings.Contains(dockerfile, line) {
			t.Fatalf("the Dockerfile has no line %q, which this test is about", line)
		}
	}
	for _, step := range regexp.MustCompile(`(?m)^RUN (.*)$`).FindAllStringSubmatch(dockerfile, -1) {
		cmd := exec.Command("sh", "-ec", strings.NewReplacer("/image", image, " /state", " "+states).Replace(step[1]))
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", step[1], err, out)
		}
	}
	port, state := freePort(t), filepath.Join(states, "parley")
	write(t, filepath.Join(image, "etc/parley/tokens"), "alice="+token+"\n")
	write(t, filepath.Join(image, "etc/parley/parleyd.toml"), fmt.Sprintf(
		"listen = [\"127.0.0.1:%s\"]\ntoken_file = \"/etc/parley/tokens\"\n", port))
	write(t, filepath.Join(image, "dev/null"), "") // which all engines of containers provide
	for _, dir := range []string{"proc", "var/lib/parley"} {
		if err := os.MkdirAll(filepath.Join(image, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := testhome.Fill(state); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chown", "-R", "65534:65534", state).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const script = `set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -o remount,ro,bind "$1"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
mount --bind /dev/null "$1/dev/null"
mount --bind "$2" "$1/var/lib/parley"
exec env -i PARLEY_HOME=/var/lib/parley "$(command -v chroot)" --userspec=65534:65534 "$1" /usr/local/bin/parleyd serve`
	container := exec.Command(unshare, "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", image,
		state)
	t.Cleanup(func() {
		if code := container.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	run(t, container)
	url := "http://127.0.0.1:" + port
	await(t, url+"/readyz")
	if answer := hash(t, url); !strings.Contains(answer, hashOfA) {
		t.Errorf("got %s", answer)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", container.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err == nil {
		err = syscall.Kill(first, syscall.SIGTERM)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestProxies calls the service through the shipped configurations of two proxies. The records have the client.
func TestProxies(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, port, upstream string) *exec.Cmd{
		"caddy": func(t *testing.T, port, upstream string) *exec.Cmd {
			cmd := exec.Command(program(t, "caddy"), "run", "--adapter", "caddyfile", "--config",
				filepath.Join(deploy, "Caddyfile"))
			cmd.Env = append(os.Environ(), "PARLEY_SITE=http://127.0.0.1:"+port, "PARLEY_UPSTREAM="+upstream,
				"XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
			return cmd
		},
		"nginx": func(t *testing.T, port, upstream string) *exec.Cmd {
			dir := t.TempDir()
			conf := filepath.Join(dir, "nginx.conf")
			location := strings.ReplaceAll(read(t, "nginx.conf"), "127.0.0.1:8931", upstream)
			write(t, conf, fmt.Sprintf("pid %s/pid;\ndaemon off;\nevents {}\nhttp { access_log off;\n"+
				"server { listen 127.0.0.1:%s; %s } }", dir, port, location))
			return exec.Command(program(t, "nginx"), "-p", dir, "-e", "stderr", "-c", conf)
		},
	} {
		t.Run(name, func(t *testing.T) {
			home, dir, upstream, port := testhome.New(t), t.TempDir(), freePort(t), freePort(t)
			proxy := start(t, port, "127.0.0.1:"+upstream)
			write(t, filepath.Join(dir, "tokens"), "alice="+token+"\n")
			config := filepath.Join(dir, "parleyd.toml")
			write(t, config, fmt.Sprintf("listen = [\"127.0.0.1:%s\"]\ntrusted_proxies = [\"127.0.0.0/8\"]\n"+
				"token_file = \"%s/tokens\"\n", upstream, dir))
			cmd := exec.Command(built(t), "serve", "--config", config)
			cmd.Env = append(os.Environ(), "PARLEY_HOME="+home)
			run(t, cmd)
			await(t, "http://127.0.0.1:"+upstream+"/readyz")
			run(t, proxy)
			await(t, "http://127.0.0.1:"+port+"/readyz")
			if answer := hash(t, "http://127.0.0.1:"+port); !strings.Contains(answer, hashOfA) {
				t.Errorf("got %s", answer)
			}
			records, err := os.ReadFile(filepath.Join(home, "state/audit/audit.jsonl"))
			if err != nil || !strings.Contains(string(records), `"peer":"127.0.0.1"`) { // a proxy says no port
				t.Errorf("the records: %s %v", records, err)
			}
		})
	}
}

const token = "0123456789abcdef"

// hashOfA is the SHA-256 of "a".
const hashOfA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"

// run runs a program until the test ends.
func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var log strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &log, &log, 5*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		stopped := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		stopped.Stop()
		t.Log(log.String())
	})
}

// freePort returns a port that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// await waits until a URL answers with status 200.
func await(t *testing.T, url string) {
	t.Helper()
	fleettest.Await(t, url, func() bool {
		answer, err := http.Get(url)
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

// hash calls text.hash and returns the answer as it comes.
func hash(t *testing.T, url string) string {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": "call_tool", "arguments": map[string]any{"name": "text.hash", "arguments": map[string]any{"text": "a"}},
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "c", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		},
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/mcp", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Mcp-Name": "call_tool",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
	} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}
