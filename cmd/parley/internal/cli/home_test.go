package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/session"
)

// scriptOldHome replaces $PARLEY_HOME with a copy of the data folder that an old version wrote: oldhome 0.1.0.
func scriptOldHome(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: oldhome VERSION")
	}
	home, work := ts.Getenv("PARLEY_HOME"), ts.Getenv("WORK")
	from := filepath.Join(ts.Getenv("WASM"), "..", "home-"+args[0])
	for _, name := range []string{"config", "data", "state"} {
		ts.Check(os.RemoveAll(filepath.Join(home, name)))
	}
	ts.Check(copyOldHome(filepath.Join(from, "home"), home, work))
	head, err := os.ReadFile(filepath.Join(from, "audit-head"))
	ts.Check(err)
	ts.Check(os.WriteFile(filepath.Join(work, "audit-head"), head, 0o600))
	ts.Check(os.MkdirAll(filepath.Join(work, "data"), 0o700))
	ts.Check(os.WriteFile(filepath.Join(work, "data", "note.txt"), []byte("stressed\n"), 0o600))
}

// copyOldHome copies a data folder of testdata. It restores what Git does not store, modes and times, replaces
// /srv/parley by root, and moves the days of the traces so that the last one is today.
func copyOldHome(from, to, root string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	now := time.Now()
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		if err := os.Chtimes(path, now, now); err != nil {
			return err
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		return err
	}
	policy := filepath.Join(to, "config", "policy.toml")
	if err := replaceIn(policy, policy, "/srv/parley", filepath.ToSlash(root)); err != nil {
		return err
	}
	traces, err := filepath.Glob(filepath.Join(to, "state", "traces", "*.jsonl"))
	if err != nil {
		return err
	}
	slices.Sort(traces)
	slices.Reverse(traces)
	today := now.UTC()
	for i, path := range traces {
		old := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		day := today.AddDate(0, 0, -i).Format("2006-01-02")
		moved := filepath.Join(filepath.Dir(path), day+".jsonl")
		if err := replaceIn(path, moved, `"t":"`+old, `"t":"`+day); err != nil {
			return err
		}
		if moved != path {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceIn writes the content of a file, with every old replaced by new, to another one.
func replaceIn(from, to, old, new string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, bytes.ReplaceAll(data, []byte(old), []byte(new)), 0o600)
}

// TestOldHome reads the parts of the 0.1.0 data folder that no command prints.
// script/home_0.1.0.txtar reads the rest.
func TestOldHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if err := copyOldHome("../../../../testdata/home-0.1.0/home", home, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, "state")

	var got []string
	damaged := func(path string, line int) { t.Errorf("%s:%d is damaged", path, line) }
	for r, err := range trace.Records(filepath.Join(state, "traces"), damaged).Read(record.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(r.Op+" "+r.Tool)+" "+r.Code)
	}
	want := []string{
		"smallest.call ok", "smallest.call ok", "text.hash ok", "text.hash invalid_args", "search ok",
		"describe text.find ok", "text.hash invalid_args", "cdp.close invalid_args", "echo.echo ok", "reader.file ok",
		"text.hash ok", "echo.call-tool ok", "echo.read-secret ok",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the traces have %q\nwant %q", got, want)
	}

	results, err := filepath.Glob(filepath.Join(state, "sessions", "results", "s-agent.*.json"))
	if err != nil || len(results) != 1 {
		t.Fatalf("%d results are stored (%v), want 1", len(results), err)
	}
	id := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(results[0]), "s-agent."), ".json")
	sessions := &session.Store{Dir: filepath.Join(state, "sessions")}
	if data, err := sessions.Result(caller.Session{Name: "agent"}, id); err != nil ||
		!strings.HasPrefix(string(data), `{"value":"0123`) {
		t.Errorf("the result of call %s is %s, %v", id, data, err)
	}
}
