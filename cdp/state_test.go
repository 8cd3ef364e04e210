package cdp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
)

func stateRequest(caller string, session caller.Session, params string) *host.Request {
	return &host.Request{Job: job.Job{Tool: "state", Caller: caller, Session: session, Params: json.RawMessage(params)}}
}

// ofPlugin returns a session of a plugin's own.
func ofPlugin(name, digest string) caller.Session {
	return caller.Session{Owner: "plugin:" + name, Name: "7", Plugin: &caller.SessionPlugin{Digest: digest}}
}

// Under another owner the name of a state is not found, and nobody but the command line uses one of another session
// without confirmation.
func TestStateOwners(t *testing.T) {
	p := New(Config{StateDir: t.TempDir()})
	token := caller.Session{Owner: "token:a", Name: "s"}
	for _, saved := range []struct {
		name string
		by   *host.Request
	}{
		{"users", stateRequest("cli", caller.Session{Name: "work"}, "")},
		{"default", stateRequest("cli", caller.Session{}, "")},
		{"tokens", stateRequest("mcp:some", token, "")},
		{"anonymous", stateRequest("mcp:some", caller.Session{Owner: "token:a"}, "")},
		{"plugins", stateRequest("plugin:one", ofPlugin("one", "sha256:1"), "")},
	} {
		store, err := p.browsers.statesOf(saved.by)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.write(savedState{Name: saved.name, Session: stateSession(saved.by)}); err != nil {
			t.Fatal(err)
		}
	}
	const found, confirmed = "found", "found, after confirmation"
	for _, c := range []struct {
		caller  string
		session caller.Session
		name    string
		want    string
	}{
		{"mcp:some", caller.Session{Name: "work"}, "users", found},
		{"mcp:some", caller.Session{Name: "play"}, "users", confirmed},
		{"mcp:some", caller.Session{}, "default", confirmed}, // a program is not the person
		{"plugin:one", caller.Session{Name: "work"}, "users", found},
		{"plugin:one", caller.Session{Name: "play"}, "users", confirmed},
		{"cli", token, "users", ""},
		{"mcp:some", token, "users", ""},
		{"mcp:some", token, "tokens", found},
		{"mcp:some", caller.Session{Owner: "token:a", Name: "t"}, "tokens", confirmed},
		{"mcp:some", caller.Session{Owner: "token:a"}, "anonymous", confirmed}, // its calls need not be of one client
		{"mcp:some", caller.Session{Owner: "token:b", Name: "s"}, "tokens", ""},
		{"plugin:one", ofPlugin("one", "sha256:1"), "plugins", found},
		{"plugin:one", ofPlugin("one", "sha256:1"), "users", ""},
		{"plugin:one", ofPlugin("one", "sha256:2"), "plugins", ""},
		{"plugin:two", ofPlugin("two", "sha256:1"), "plugins", ""},
		{"cli", caller.Session{}, "plugins", ""},
	} {
		r := stateRequest(c.caller, c.session, `{"action":"load","name":"`+c.name+`"}`)
		got := ""
		store, err := p.browsers.statesOf(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.read(c.name); err == nil {
			got = found
		} else if host.AsError(err).Code != host.NotFound {
			t.Error(err)
		}
		if p.NeedsConfirmation(&r.Job) != "" {
			got += ", after confirmation"
		}
		if got != c.want {
			t.Errorf("%s in %q loads %s: %q, want %q", c.caller, c.session, c.name, got, c.want)
		}
		for _, action := range []string{"save", "delete"} {
			r.Params = json.RawMessage(`{"action":"` + action + `","name":"` + c.name + `","origins":["https://a.test"]}`)
			if asks := p.NeedsConfirmation(&r.Job) != ""; asks != (c.want == confirmed && action == "delete") {
				t.Errorf("%s in %q: %s of %s asks: %v", c.caller, c.session, action, c.name, asks)
			}
		}
	}
}

// TestStateFiles checks the files of states: for the user alone, bounded in number, and removed after a while.
func TestStateFiles(t *testing.T) {
	p := New(Config{StateDir: filepath.Join(t.TempDir(), "browser")})
	r := stateRequest("cli", caller.Session{}, `{"action":"list"}`)
	store, err := p.browsers.statesOf(r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxStates + 1 {
		err = store.write(savedState{Name: "s" + strings.Repeat("x", i),
			State: api.State{Cookies: []api.Cookie{{Value: "secret"}}}})
		if (err == nil) != (i < maxStates) {
			t.Fatalf("state %d: %v", i, err)
		}
	}
	if host.AsError(err).Code != host.LimitExceeded {
		t.Error(err)
	}
	if err := store.write(savedState{Name: "s"}); err != nil {
		t.Error("replacing one: ", err)
	}
	if err := store.delete("s"); err != nil {
		t.Error(err)
	}
	if err := store.write(savedState{Name: "SX"}); err == nil || host.AsError(err).Code != host.AlreadyExists {
		t.Error("a name that differs by case: ", err)
	}
	for path, mode := range map[string]os.FileMode{store.dir: 0o700, store.path("sx"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
	old := time.Now().Add(-stateTTL - time.Hour)
	for _, name := range []string{"sx", "sxx"} {
		if err := os.Chtimes(store.path(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	store.touch("sxx") // a use
	answer, err := p.browsers.state(t.Context(), r)
	if err != nil || strings.Contains(string(answer.Data), `"sx"`) || !strings.Contains(string(answer.Data), `"sxx"`) ||
		strings.Contains(string(answer.Data), "secret") {
		t.Errorf("%s, %v", answer.Data, err)
	}
	if _, err := os.Stat(store.path("sx")); err == nil {
		t.Error("an unused state was not removed")
	}
	if err := os.Chmod(store.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := p.browsers.statesOf(r); err == nil || host.AsError(err).Code != host.ConfigError {
		t.Error("a folder to which everybody can write: ", err)
	}
}

// TestStateParams checks what state refuses before it needs a browser.
func TestStateParams(t *testing.T) {
	p := New(Config{StateDir: t.TempDir()})
	for params, code := range map[string]host.Code{
		`{"action":"save","name":"a"}`: host.InvalidArgs,
		`{"action":"load"}`:            host.InvalidArgs,
		`{"action":"save","name":"a","origins":["https://*.a.test"]}`:     host.InvalidArgs,
		`{"action":"save","name":"a","origins":["file:///etc"]}`:          host.InvalidArgs,
		`{"action":"save","name":"a","origins":["https://a.test/login"]}`: host.InvalidArgs,
		`{"action":"load","name":"a"}`:                                    host.NotFound,
		`{"action":"delete","name":"a"}`:                                  host.NotFound,
	} {
		_, err := p.browsers.state(t.Context(), stateRequest("cli", caller.Session{}, params))
		if err == nil || host.AsError(err).Code != code {
			t.Errorf("%s: %v", params, err)
		}
	}
	q, err := readStateParams(stateRequest("cli", caller.Session{},
		`{"action":"save","name":"a","origins":["https://B.test/","https://a.test:443","https://b.test"]}`))
	if got := strings.Join(q.Origins, " "); err != nil || got != "https://a.test https://b.test" {
		t.Errorf("%s, %v", got, err)
	}
	if tool, err := p.Tool("state"); err != nil || !tool.Outside() {
		t.Errorf("a wildcard grants state: %+v, %v", tool, err)
	}
}
