package service

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/setup"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/internal/testhome"
	"github.com/parley-tools/parley/manifest"
)

// TestFleetKeys has each command with the key of each role.
func TestFleetKeys(t *testing.T) {
	t.Setenv("PARLEY_HOME", t.TempDir())
	dir := t.TempDir()
	if err := setup.Init([]string{dir, "--host", "127.0.0.1", "--host", "::1", "--front", "f", "--worker", "w"},
		t.Output()); err != nil {
		t.Fatal(err)
	}
	server := fleettest.Start(t, fleettest.Options{ConfigFile: filepath.Join(dir, "server", "nats-server.conf")})
	shorten(t, dir)
	server.Reload()
	const no = 88 // says that another key is expected
	for name, codes := range map[string]map[string]int{
		"operator": {"status": 0, "explain text.hash": 0, "drain nobody": 83, "publish none": 83},
		"f":        {"status": 0, "explain text.hash": 0, "drain nobody": no, "publish none": no},
		"w":        {"status": no, "explain text.hash": no, "drain nobody": no, "publish none": no},
	} {
		folder := filepath.Join(dir, "parley", name)
		config := filepath.Join(t.TempDir(), "fleet.toml")
		text := fmt.Sprintf("[fleet]\nurl = %q\nname = %q\nkey = %q\nca = %q\n", server.URL, name,
			filepath.Join(folder, name+".nk"), filepath.Join(folder, "ca.pem"))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for command, want := range codes {
			var out, errs bytes.Buffer
			got := Main(append([]string{"fleet"}, append(strings.Fields(command), "--config", config)...), &out, &errs)
			if name != "w" && command == "status" && !strings.Contains(out.String(), "--renew") {
				t.Errorf("no word of a certificate that ends soon: %s", &out)
			}
			if got != want || want == no && !strings.Contains(errs.String(), "an operator") {
				t.Errorf("%s, with the key of %s: exit code %d, expected %d: %s%s", command, name, got, want, &out, &errs)
			}
		}
	}
}

// shorten gives the server of a fleet a certificate that ends in a month.
func shorten(t *testing.T, dir string) {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(dir, "server", "server")
	pair, err := tls.LoadX509KeyPair(server+".pem", server+".key")
	if err != nil {
		t.Fatal(err)
	}
	c := pair.Leaf
	c.NotAfter = time.Now().Add(30 * 24 * time.Hour)
	data, err := x509.CreateCertificate(rand.Reader, c, authority.Leaf, c.PublicKey, authority.PrivateKey)
	if err == nil {
		err = os.WriteFile(server+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFleetCommands operates a fleet by the command line, with a worker in this process.
func TestFleetCommands(t *testing.T) {
	installEcho(t)
	url := fleettest.Start(t, fleettest.Options{}).URL
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := file("fleet.toml", "[fleet]\nurl = \""+url+"\"\nname = \"me\"\n")
	policy := func(text string) {
		dir := parley.FindDirs("", os.Getenv).Config
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "policy.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// run runs a command, whose output or error must have some texts.
	run := func(code int, want string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if name := args[len(args)-1]; name != "help" {
			args = append(args, "--config", config)
		}
		if got := Main(append([]string{"fleet"}, args...), &out, &errs); got != code {
			t.Errorf("%q: exit code %d, expected %d", args, got, code)
		}
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(out.String()+errs.String(), part) {
				t.Errorf("%q: no %q in %s%s", args, part, out.String(), errs.String())
			}
		}
	}
	run(0, "publish NAME|explain TOOL", "help")
	run(81, "unknown command|init, publish, status", "start")
	run(81, "a name is missing|fleet help", "drain")
	run(81, "got 2 names, expected at most 1", "drain", "a", "b")
	run(83, "there is no worker w9|fleet status", "drain", "w9")
	run(0, "no workers", "status")
	run(83, "none", "publish", "none")
	run(81, "text is shipped", "publish", "text")
	run(0, "published echo 1.0.0 (sha256:", "publish", "echo")
	run(0, "withdrew echo", "publish", "--withdraw", "echo")
	run(88, "cannot read fleet.key", "publish", "--policy", file("shared.toml", "[operator]\naudit = \"required\"\n"))
	run(83, "withdraw echo", "publish", "--withdraw", "echo")

	run(0, "echo.echo\n|at the front: policy.toml has no run|leaves  nothing", "explain", "echo.echo")
	run(0, "at the front: it has no code", "explain", "cdp.status")
	run(83, "echo has no tool ech", "explain", "echo.ech")
	policy("[plugin.echo]\nrun = \"fleet:main\"\n")
	run(0, "nowhere now: the pool main has no worker|values of secrets and variables", "explain", "echo.echo")
	policy("[plugin.echo]\nrun = \"fleet:main\"\nisolate = \"none\"\n")
	run(0, "at the front, because of isolate", "explain", "echo.echo")

	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	w, err := (&fleet.Config{URL: url, Name: "w1"}).Worker(fleet.WorkerConfig{Pool: "main", Slots: 3},
		parley.FindDirs(testhome.New(t), os.Getenv), log)
	if err != nil {
		t.Fatal(err)
	}
	policy("[plugin.text]\nrun = \"fleet:main\"\n")
	run(0, "POOL|main  w1      3      3", "status")
	run(0, "on a worker of the pool main, which has 1 with 3 slots", "explain", "text.hash")
	run(0, "w1 drains: 0 calls", "drain", "w1")
	if err := w.Wait(context.Background()); err != nil {
		t.Error(err)
	}
	run(0, "no workers", "status")

	config = file("wrong.toml", "[fleet]\nurl = \"http://x\"\n[worker]\npool = \"a.b\"\nslots = 0\ntrust = [\"nobody\"]\n")
	run(88, "fleet.url|tls://HOST:PORT|worker.pool|worker.slots|worker.trust", "status")
	config = file("none.toml", "[log]\nlevel = \"warn\"\n")
	run(88, "fleet.url|got \"nothing\"", "status")
	config = file("away.toml", "[fleet]\nurl = \"nats://127.0.0.1:1\"\nname = \"me\"\n")
	run(105, "cannot connect to nats://127.0.0.1:1", "status")
}

// TestExplained has pools whose workers differ: where one of them can isolate a plugin, its calls run there.
func TestExplained(t *testing.T) {
	can, cannot := fleet.Status{Pool: "main", Slots: 1}, fleet.Status{Pool: "main", Slots: 2, Lacks: "seccomp"}
	leaving, other := fleet.Status{Pool: "main", Slots: 4, Draining: true}, fleet.Status{Pool: "other", Slots: 8}
	for want, workers := range map[string][]fleet.Status{
		"of the pool main, which has 2 with 3 slots": {can, cannot, leaving, other},
		"of the pool main, which has 2 with 3 slot":  {cannot, can},
		"the workers lack seccomp":                   {cannot, cannot, leaving, other},
		"nowhere now":                                {leaving, other},
	} {
		x := policy.Explanation{Pool: "main"}
		if got := explained("a.b", manifest.KindWASI, x, workers); !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}
