package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
)

// policyFile writes a policy that says whether calls depend on the audit log.
func policyFile(t *testing.T, audit string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "[operator]\naudit = %q\n", audit), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newUser(t *testing.T) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Fronts that share the policy of the fleet follow it, and keep it without the fleet. One that is not valid, not
// signed or older, a local file and a withdrawal change nothing.
func TestSharedPolicy(t *testing.T) {
	server, js := fleet(t)
	operator, key, other := &Catalog{js}, newUser(t), newUser(t)
	public, _ := key.PublicKey()
	share := func(home string) error {
		conn, _ := connect(t, server.URL)
		return NewMirror(t.Logf).SharePolicy(conn, public, parley.FindDirs(home, os.Getenv).Config)
	}
	if err := share(t.TempDir()); !errors.Is(err, host.Unavailable) || !strings.Contains(err.Error(), "publish --policy") {
		t.Errorf("without a policy: %v", err)
	}
	err := operator.PublishPolicy(t.Context(), policyFile(t, "sometimes"), key)
	if !errors.Is(err, host.ConfigError) || !strings.Contains(err.Error(), "policy.toml:2:") {
		t.Errorf("a policy that is not valid: %v", err)
	}
	if err := operator.PublishPolicy(t.Context(), "missing.toml", key); !errors.Is(err, host.ConfigError) {
		t.Errorf("no file: %v", err)
	}
	publish := func(audit string) {
		t.Helper()
		if err := operator.PublishPolicy(t.Context(), policyFile(t, audit), key); err != nil {
			t.Fatal(err)
		}
	}
	publish("required")
	var fronts []*front
	for range 2 {
		home := t.TempDir()
		if err := share(home); err != nil {
			t.Fatal(err)
		}
		f := start(t, home, "")
		conn, _ := connect(t, server.URL)
		if err := f.mirror.SharePolicy(conn, public, f.Dirs().Config); err != nil {
			t.Fatal(err)
		}
		go f.mirror.Run(t.Context(), conn, f.Parley)
		fronts = append(fronts, f)
	}
	// follow waits until all fronts have a policy.
	follow := func(audit string) {
		t.Helper()
		for _, f := range fronts {
			await(t, "a front has the policy "+audit, func() bool {
				rules, err := f.Policy()
				if err != nil {
					t.Fatal(err)
				}
				now, err := rules.Audit()
				return err == nil && now == audit
			})
		}
	}
	follow("required")
	lines, err := js.KeyValue(t.Context(), Lines)
	if err != nil {
		t.Fatal(err)
	}
	first, err := lines.Get(t.Context(), policyKey)
	if err != nil {
		t.Fatal(err)
	}
	publish("off")
	follow("off")
	for _, refused := range []struct {
		says string
		put  func() error
	}{
		{"policy.toml:5:", func() error {
			return operator.putPolicy(t.Context(), []byte("[operator]\nfuture = true\n"), key)
		}},
		{"is not signed by " + public, func() error {
			return operator.putPolicy(t.Context(), []byte("[operator]\naudit = \"on\"\n"), other)
		}},
		{"but the one here is from 20", func() error {
			_, err := lines.Put(t.Context(), policyKey, first.Value())
			return err
		}},
		{"is not signed by", func() error {
			_, err := lines.PutString(t.Context(), policyKey, "")
			return err
		}},
	} {
		if err := refused.put(); err != nil {
			t.Fatal(err)
		}
		for _, f := range fronts {
			await(t, "the log says "+refused.says, func() bool { return strings.Contains(f.log(), refused.says) })
			again := NewMirror(t.Logf)
			if err := again.SharePolicy(f.mirror.fleet.Load().js.Conn(), public, f.Dirs().Config); err != nil {
				t.Errorf("a start while the policy is refused: %v", err)
			}
		}
	}
	if err := operator.Withdraw(t.Context(), policyKey); err != nil {
		t.Fatal(err)
	}
	follow("off")
	publish("required")
	follow("required")

	own := t.TempDir()
	path := filepath.Join(parley.FindDirs(own, os.Getenv).Config, "policy.toml")
	err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("# mine\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := share(own); !errors.Is(err, host.ConfigError) || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a policy of its own: %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "# mine\n" {
		t.Errorf("the policy of its own is now %q", text)
	}
	server.Stop()
	var both sync.WaitGroup
	both.Go(func() {
		conn := fronts[0].mirror.fleet.Load().js.Conn()
		if err := NewMirror(t.Logf).SharePolicy(conn, public, fronts[0].Dirs().Config); err != nil {
			t.Errorf("a front that had the policy starts without the fleet: %v", err)
		}
	})
	both.Go(func() {
		conn := fronts[1].mirror.fleet.Load().js.Conn()
		if err := NewMirror(t.Logf).SharePolicy(conn, public, t.TempDir()); !errors.Is(err, host.Unavailable) {
			t.Errorf("a new front without the fleet: %v", err)
		}
	})
	both.Wait()
}

// The code of builds that no line has is removed, but not soon after something of it has changed.
func TestPrune(t *testing.T) {
	_, js := fleet(t)
	operator := &Catalog{js}
	for _, c := range []struct{ fixture, version string }{
		{"smallest", "1.0.0"}, {"smallest", "1.1.0"}, {"echo", "1.0.0"}, {"work", "1.0.0"},
	} {
		if _, err := operator.Publish(t.Context(), build(t, c.fixture, "", c.version, "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := operator.Withdraw(t.Context(), "work"); err != nil {
		t.Fatal(err)
	}
	// objects returns how many there are after a pruning.
	objects := func(keep time.Duration) int {
		t.Helper()
		if err := operator.Prune(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		code, err := js.ObjectStore(t.Context(), Code)
		if err != nil {
			t.Fatal(err)
		}
		all, err := code.List(t.Context())
		if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
			t.Fatal(err)
		}
		return len(all)
	}
	if n := objects(time.Hour); n != 8 {
		t.Errorf("%d objects soon after the changes, expected all 8", n)
	}
	if n := objects(0); n != 4 {
		t.Errorf("%d objects, expected the two of each published build", n)
	}
	for _, c := range []struct {
		fixture, version string
		want             error
	}{
		{"smallest", "1.0.0", host.NotFound}, {"smallest", "1.1.0", nil}, {"echo", "1.0.0", nil},
		{"work", "1.0.0", host.NotFound},
	} {
		if _, err := operator.Fetch(t.Context(), build(t, c.fixture, "", c.version, "").Digest); !errors.Is(err, c.want) {
			t.Errorf("%s %s: %v", c.fixture, c.version, err)
		}
	}
}
