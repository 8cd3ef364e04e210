package call_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/session"
)

// agent fails calls in a session, and reports what the session has stored by the tier of the documentation.
type agent struct {
	t *testing.T
	h *call.Host
}

func newAgent(t *testing.T, s *session.Store) agent {
	return agent{t, newHost(t, call.Config{Sessions: s}, newFake(t, shop, nil))}
}

func (a agent) fails(session, tool string) (tier int) {
	a.t.Helper()
	answer, _ := a.h.Call(a.t.Context(), host.Call{Name: tool, Params: json.RawMessage(`[]`), Principal: cliIn(session)})
	return failsWith(a.t, answer, host.InvalidArgs).Docs.Tier
}

// keeps makes a result that is stored for a session.
func (a agent) keeps(session string) (callID string) {
	a.t.Helper()
	answer, _ := a.h.Call(a.t.Context(), host.Call{Name: "shop.echo", Params: json.RawMessage(`{"text":"a long text"}`),
		Principal: cliIn(session), Options: job.Options{MaxBytes: 5}})
	if answer.Err != nil || !answer.Cut {
		a.t.Fatalf("%s, %v", answer.Data, answer.Err)
	}
	return answer.CallID
}

func TestSessionLastsADay(t *testing.T) {
	now := time.Now()
	sessions := &session.Store{Dir: t.TempDir(), Now: func() time.Time { return now }}
	a := newAgent(t, sessions)
	if tier := a.fails("s", "shop.add"); tier != 2 {
		t.Errorf("a new session: tier %d", tier)
	}
	now = now.Add(23 * time.Hour)
	if tier := a.fails("s", "shop.add"); tier != 3 {
		t.Errorf("after 23 hours: tier %d", tier)
	}
	now = now.Add(48 * time.Hour)
	if tier := a.fails("s", "shop.add"); tier != 2 {
		t.Errorf("after two more days: tier %d", tier)
	}
}

// TestSessionsAreSwept checks that a new session removes expired ones with their results.
func TestSessionsAreSwept(t *testing.T) {
	now, dir := time.Now(), t.TempDir()
	sessions := &session.Store{Dir: dir, Now: func() time.Time { return now }}
	a := newAgent(t, sessions)
	a.fails("old", "shop.add")
	kept := a.keeps("old")
	if _, err := sessions.Result(caller.Session{Name: "old"}, kept); err != nil {
		t.Fatal(err)
	}
	now = now.Add(25 * time.Hour)
	a.fails("new", "shop.add")
	if _, err := sessions.Result(caller.Session{Name: "old"}, kept); err == nil {
		t.Error("the result of an old session is still there")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) != 1 || !strings.Contains(files[0], "new") {
		t.Errorf("remaining files: %q", files)
	}
}

func TestSessionFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "sessions")
	a := newAgent(t, &session.Store{Dir: dir})
	for i, name := range []string{
		"plain", "UPPER_lower-1", "../../escape", "a/b", "a\\b", "with space", ".hidden", "-dash", "nul\x00byte", "ünï",
		strings.Repeat("x", 64), strings.Repeat("x", 65),
		strings.Repeat("y", 5000), "CON", "a:b", "*", "\xff", "lock", "results", "none", "s-plain",
	} {
		if tier := a.fails(name, "shop.add"); tier != 2 {
			t.Errorf("%q is not a new session: tier %d", name, tier)
		}
		if tier := a.fails(name, "shop.add"); tier != 3 {
			t.Errorf("%q is not stored: tier %d", name, tier)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != i+2 { // and the lock
			t.Fatalf("%q: %d files for %d sessions, %v", name, len(files), i+1, err)
		}
	}
	err := filepath.WalkDir(filepath.Dir(filepath.Dir(dir)), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && strings.HasPrefix(path, dir) {
			t.Errorf("%s can be read by others: %v", path, info.Mode())
		}
		if !d.IsDir() && filepath.Dir(path) != dir {
			t.Errorf("%s is outside of %s", path, dir)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSessionDamaged(t *testing.T) {
	for _, damage := range []string{"", "{", "null", "[]", `"x"`, `{"tiers":{"shop.add":"x"}}`, `{"tiers":[1]}`,
		"\x00\xff", strings.Repeat("[", 100000)} {
		dir := t.TempDir()
		a := newAgent(t, &session.Store{Dir: dir})
		a.fails("s", "shop.add")
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		if len(files) != 1 {
			t.Fatal(files)
		}
		if err := os.WriteFile(files[0], []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if tier := a.fails("s", "shop.add"); tier != 2 {
			t.Errorf("%.20q: tier %d, expected a new session", damage, tier)
		}
		if tier := a.fails("s", "shop.add"); tier != 3 {
			t.Errorf("%.20q: tier %d, expected the old session", damage, tier)
		}
	}
}

func TestSessionsWithoutAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*session.Store{"nil": nil, "none": {},
		"a file is in the way": {Dir: filepath.Join(file, "sessions")}} {
		a := newAgent(t, s)
		for range 2 {
			if tier := a.fails("s", "shop.add"); tier != 2 {
				t.Errorf("%s: tier %d", name, tier)
			}
		}
		answer, _ := a.h.Call(t.Context(), host.Call{Name: "shop.echo", Params: json.RawMessage(`{"text":"a long text"}`),
			Principal: caller.Principal{Session: caller.Session{Name: "s"}}, Options: job.Options{MaxBytes: 5}})
		if answer.Err != nil || strings.Contains(string(answer.Data), "parley://") {
			t.Errorf("%s: %s, %v", name, answer.Data, answer.Err)
		}
		if _, err := s.Result(caller.Session{Name: "s"}, answer.CallID); err == nil {
			t.Errorf("%s: a result is stored", name)
		}
	}
}

func TestResultsAreBounded(t *testing.T) {
	dir := t.TempDir()
	sessions := &session.Store{Dir: dir}
	a := newAgent(t, sessions)
	var calls []string
	for i := range 40 {
		id := a.keeps("s")
		calls = append(calls, id)
		files, err := filepath.Glob(filepath.Join(dir, "results", "*"))
		if err != nil || len(files) > 16 {
			t.Fatalf("%d results are stored", len(files))
		}
		// Files of the same time have no order, so give each another time.
		at := time.Now().Add(time.Duration(i-100) * time.Second)
		for _, f := range files {
			if strings.Contains(f, id) {
				if err := os.Chtimes(f, at, at); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i, id := range calls {
		_, err := sessions.Result(caller.Session{Name: "s"}, id)
		if kept := err == nil; kept != (i >= 24) {
			t.Errorf("result %d of 40 is stored: %v", i, kept)
		}
	}
	other := a.keeps("other")
	if _, err := sessions.Result(caller.Session{Name: "s"}, calls[39]); err != nil {
		t.Errorf("the results of another session replaced it: %v", err)
	}
	for _, id := range []string{"", "../../../etc/passwd", "*", "c/../c", "nothing", other, strings.Repeat("x", 1000),
		"\x00"} {
		data, err := sessions.Result(caller.Session{Name: "s"}, id)
		if err == nil || host.AsError(err).Code != host.NotFound || len(err.Error()) > 200 {
			t.Errorf("%.20q: %s, %v", id, data, err)
		}
	}
}

// concurrentSession names the folder of the sessions of TestSessionOfManyProcesses.
const concurrentSession = "PARLEY_TEST_SESSIONS"

const toolsOfEach = 25

// many is a manifest of n tools t0, t1, ...
func many(n int) string {
	var tools []string
	for i := range n {
		tools = append(tools,
			fmt.Sprintf(`{"name":"t%d","docs":{"brief":"Tool number %d"},"effect":"read","params":{"type":"object"}}`, i, i))
	}
	return `{"manifest":1,"name":"many","version":"1.0.0","kind":"parley/1","docs":{"brief":"Many tools"},"tools":[` +
		strings.Join(tools, ",") + `]}`
}

func showTools(t *testing.T, dir string, from int) {
	h := newHost(t, call.Config{Sessions: &session.Store{Dir: dir}}, newFake(t, many(4*toolsOfEach), nil))
	for i := range toolsOfEach {
		name := fmt.Sprintf("many.t%d", from*toolsOfEach+i)
		if _, err := h.Describe(t.Context(), cliIn("shared"), name, 2); err != nil {
			t.Error(err)
		}
	}
}

func remembersAll(t *testing.T, dir string) {
	t.Helper()
	h := newHost(t, call.Config{Sessions: &session.Store{Dir: dir}}, newFake(t, many(4*toolsOfEach), nil))
	for i := range 4 * toolsOfEach {
		a, _ := h.Call(t.Context(), host.Call{Name: fmt.Sprintf("many.t%d", i), Params: json.RawMessage(`[]`),
			Principal: cliIn("shared")})
		if e := failsWith(t, a, host.InvalidArgs); e.Docs.Tier != 3 {
			t.Errorf("tool %d: the shown tier is not stored", i)
		}
	}
}

func TestSessionOfManyGoroutines(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { showTools(t, dir, i) })
	}
	wg.Wait()
	remembersAll(t, dir)
}

func TestSessionOfManyProcesses(t *testing.T) {
	if dir := os.Getenv(concurrentSession); dir != "" {
		var from int
		if _, err := fmt.Sscan(os.Getenv(concurrentSession+"_FROM"), &from); err != nil {
			t.Fatal(err)
		}
		showTools(t, dir, from)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestSessionOfManyProcesses$")
			cmd.Env = append(os.Environ(), concurrentSession+"="+dir, fmt.Sprintf("%s_FROM=%d", concurrentSession, i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	remembersAll(t, dir)
}

// TestSessionInUseIsNotForgotten checks that a session expires a day after its last use, not after its last change.
func TestSessionInUseIsNotForgotten(t *testing.T) {
	now := time.Now()
	a := newAgent(t, &session.Store{Dir: t.TempDir(), Now: func() time.Time { return now }})
	describe := func() {
		if _, err := a.h.Describe(t.Context(), cliIn("s"), "shop.add", 2); err != nil {
			t.Fatal(err)
		}
	}
	describe()
	for range 3 {
		now = now.Add(20 * time.Hour)
		describe()
	}
	if tier := a.fails("s", "shop.add"); tier != 3 {
		t.Errorf("tier %d: the session expired while in use", tier)
	}
}

func TestSessionsInAnOddFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state[1]*?")
	a := newAgent(t, &session.Store{Dir: dir})
	for range 20 {
		a.keeps("s")
	}
	files, err := os.ReadDir(filepath.Join(dir, "results"))
	if err != nil || len(files) > 16 {
		t.Errorf("%d results are stored, %v", len(files), err)
	}
}
