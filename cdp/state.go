package cdp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/manifest"
)

type stateParams struct {
	Action  string   `json:"action"`
	Name    string   `json:"name"`
	Origins []string `json:"origins"`
}

// stateAnswer is the result of state: numbers and names, never a value.
type stateAnswer struct {
	Action  string   `json:"action"`
	Name    string   `json:"name,omitempty"`
	Origins []string `json:"origins,omitempty"`
	Cookies *int     `json:"cookies,omitempty"`
	Items   *int     `json:"items,omitempty"`
}

// stateLine is a saved state in a list.
type stateLine struct {
	Name    string    `json:"name"`
	Session string    `json:"session"` // the session that saved it
	Origins []string  `json:"origins"`
	Cookies int       `json:"cookies"`
	Items   int       `json:"items"`
	Saved   time.Time `json:"saved"`
	Used    time.Time `json:"used"`
}

// state saves and loads cookies and storage, and lists and deletes what was saved.
func (b *browsers) state(ctx context.Context, r *host.Request) (*job.Result, error) {
	q, err := readStateParams(r)
	if err != nil {
		return nil, err
	}
	store, err := b.statesOf(r)
	if err != nil {
		return nil, err
	}
	switch q.Action {
	case "save":
		return b.saveState(ctx, r, store, q)
	case "load":
		return b.loadState(ctx, r, store, q)
	case "delete":
		if err := store.delete(q.Name); err != nil {
			return nil, err
		}
		return result(stateAnswer{Action: q.Action, Name: q.Name})
	}
	lines := store.list()
	var notes []string
	if len(lines) == 0 {
		notes = append(notes, "nothing is saved")
	}
	return result(struct {
		Action string      `json:"action"`
		States []stateLine `json:"states"`
	}{q.Action, lines}, notes...)
}

// readStateParams returns the parameters of a call of state, with origins in their canonical spelling.
func readStateParams(r *host.Request) (q stateParams, err error) {
	if err := json.Unmarshal(r.Params, &q); err != nil {
		return q, err
	}
	missing := func(name, what string) error {
		e := host.Errorf(host.InvalidArgs, "%s requires %s: %s", q.Action, name, what)
		e.Details = []host.Detail{{Parameter: "/" + name, Keyword: "required", Provided: "nothing", Expected: what}}
		return e
	}
	if q.Name == "" && q.Action != "list" {
		return q, missing("name", "the name of a state")
	}
	if len(q.Origins) == 0 && q.Action == "save" {
		return q, missing("origins", `a list such as ["https://example.com"]`)
	}
	for i, given := range q.Origins {
		origin, err := origin.Exact(strings.TrimSuffix(given, "/"))
		if err != nil {
			e := host.Errorf(host.InvalidArgs, "%v", err)
			e.Details = []host.Detail{{Parameter: fmt.Sprintf("/origins/%d", i), Keyword: "format",
				Provided: fmt.Sprintf("string %q", manifest.Clip(manifest.CleanLine(given), 100)),
				Expected: "an http or https origin such as https://example.com"}}
			return q, e
		}
		q.Origins[i] = origin
	}
	slices.Sort(q.Origins)
	q.Origins = slices.Compact(q.Origins)
	return q, nil
}

func (b *browsers) saveState(ctx context.Context, r *host.Request, s stateStore, q stateParams) (*job.Result, error) {
	c, err := b.clientFor(ctx, r)
	if err != nil {
		return nil, err
	}
	state, err := keeper.Ask(ctx, c, api.OpSaveState, api.StateRequest{Origins: q.Origins})
	if err != nil {
		return nil, err
	}
	saved := savedState{Name: q.Name, Session: stateSession(r), Origins: q.Origins, Saved: time.Now().UTC(), State: state}
	if err := s.write(saved); err != nil {
		return nil, err
	}
	line := saved.line(saved.Saved)
	var notes []string
	if line.Cookies+line.Items == 0 {
		notes = append(notes, "these origins have stored nothing in this session")
	}
	return result(stateAnswer{Action: q.Action, Name: q.Name, Origins: q.Origins, Cookies: &line.Cookies,
		Items: &line.Items}, notes...)
}

func (b *browsers) loadState(ctx context.Context, r *host.Request, s stateStore, q stateParams) (*job.Result, error) {
	saved, err := s.read(q.Name)
	if err != nil {
		return nil, err
	}
	if len(q.Origins) == 0 {
		q.Origins = saved.Origins
	}
	for _, origin := range q.Origins {
		if !slices.Contains(saved.Origins, origin) {
			return nil, host.Errorf(host.InvalidArgs, "state %s was saved without %s; it has %s", q.Name, origin,
				strings.Join(saved.Origins, ", "))
		}
	}
	var done api.StateLoaded
	var notes []string
	err = retryOpen(ctx, maxOpenAttempts, r.Options.Browser, func() (err error) {
		var c *keeper.Client
		if c, notes, err = b.opened(ctx, r, openParams{}); err == nil { // a login may be the first that a session needs
			done, err = keeper.Ask(ctx, c, api.OpLoadState, api.StateRequest{Origins: q.Origins, State: &saved.State})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.touch(q.Name)
	for _, origin := range done.Left {
		notes = append(notes, fmt.Sprintf("sessionStorage of %s belongs to a page: open one and load again to restore it",
			origin))
	}
	return result(stateAnswer{Action: q.Action, Name: q.Name, Origins: q.Origins, Cookies: &done.Cookies,
		Items: &done.Items}, notes...)
}

// NeedsConfirmation returns the reason to ask a person before a state is loaded or deleted that another session of
// the same owner has saved, because it is that session's login. It returns "" for other calls. Saving a state only
// replaces it and gives nobody a login.
func (p *Provider) NeedsConfirmation(j *job.Job) string {
	r := &host.Request{Job: *j}
	if r.Tool != "state" {
		return ""
	}
	q, err := readStateParams(r)
	if err != nil || q.Action == "list" || q.Action == "save" {
		return ""
	}
	store, err := p.browsers.statesOf(r)
	if err != nil {
		return ""
	}
	saved, err := store.read(q.Name)
	if err != nil || saved.Session == stateSession(r) && !callerOf(r).Anonymous {
		return ""
	}
	return fmt.Sprintf("state %s was saved by another session", q.Name)
}

// stateSession returns the key of a call's session, which the states that it saves carry.
func stateSession(r *host.Request) string {
	return cmp.Or(callerOf(r).Session, r.Caller)
}

// stateStore holds the saved states of one owner, one file for each, in the owner's own folder.
type stateStore struct{ dir string }

const (
	stateTTL   = 30 * 24 * time.Hour // without use
	maxStates  = 32                  // of one owner
	stateExt   = ".json"
	stateBytes = api.MaxState + 1<<20 // of a file
)

// savedState is the content of a file.
type savedState struct {
	Name    string    `json:"name"`
	Session string    `json:"session"`
	Origins []string  `json:"origins"`
	Saved   time.Time `json:"saved"`
	State   api.State `json:"state"`
}

func (s savedState) line(used time.Time) stateLine {
	items := 0
	for _, storage := range []map[string]json.RawMessage{s.State.Local, s.State.Session} {
		for _, entries := range storage {
			var all []json.RawMessage
			_ = json.Unmarshal(entries, &all)
			items += len(all)
		}
	}
	return stateLine{s.Name, s.Session, s.Origins, len(s.State.Cookies), items, s.Saved, used}
}

// statesOf returns the store of the owner of a call's session. Each version of a plugin is an owner of its own.
func (b *browsers) statesOf(r *host.Request) (stateStore, error) {
	if b.cfg.StateDir == "" {
		return stateStore{}, host.Errorf(host.Unavailable, "this host has no folder for saved states")
	}
	owner := cmp.Or(r.Session.Owner, "user")
	if r.Session.Plugin != nil {
		owner += "\x00" + r.Session.Plugin.Digest
	}
	sum := sha256.Sum256([]byte(owner))
	s := stateStore{filepath.Join(b.cfg.StateDir, hex.EncodeToString(sum[:16]))}
	for _, dir := range []string{b.cfg.StateDir, s.dir} {
		if err := protect.CheckFolder(dir); err != nil {
			return s, host.Errorf(host.ConfigError, "%v", err)
		}
	}
	b.removeExpiredStates()
	return s, nil
}

// removeExpiredStates removes the states of all owners that were not used for stateTTL.
func (b *browsers) removeExpiredStates() {
	paths, _ := filepath.Glob(filepath.Join(b.cfg.StateDir, "*", "*"))
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > stateTTL {
			_ = os.Remove(path)
			_ = os.Remove(filepath.Dir(path)) // if it is empty now
		}
	}
}

func (s stateStore) path(name string) string { return filepath.Join(s.dir, name+stateExt) }

func (s stateStore) notFound(name string) *host.Error {
	return host.Errorf(host.NotFound, "no state is saved as %q", manifest.CleanLine(name)).
		WithSteps(toolStep("state", map[string]any{"action": "list"}))
}

func (s stateStore) read(name string) (saved savedState, err error) {
	data, err := protect.Read(s.path(name), stateBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return saved, s.notFound(name)
	case err != nil:
		return saved, host.Errorf(host.ConfigError, "%v", err)
	}
	if json.Unmarshal(data, &saved) != nil || saved.Name != name { // some file systems ignore case
		return saved, s.notFound(name)
	}
	return saved, nil
}

func (s stateStore) write(saved savedState) error {
	names := s.names()
	if !slices.Contains(names, saved.Name) {
		if len(names) >= maxStates {
			return host.Errorf(host.LimitExceeded, "%d states are saved, which is the limit: delete one first", maxStates).
				WithSteps(toolStep("state", map[string]any{"action": "list"}))
		}
		if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, saved.Name) }); i >= 0 {
			return host.Errorf(host.AlreadyExists, "a state %s already exists; names are the same whatever their case", names[i])
		}
	}
	data, err := json.Marshal(saved)
	if err == nil {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err == nil {
		err = durable.Write(s.path(saved.Name), data)
	}
	if err != nil {
		return host.Errorf(host.ConfigError, "the state cannot be saved: %v", err)
	}
	return nil
}

// touch records that a state was used.
func (s stateStore) touch(name string) { _ = os.Chtimes(s.path(name), time.Time{}, time.Now()) }

func (s stateStore) delete(name string) error {
	if _, err := s.read(name); err != nil && host.AsError(err).Code == host.NotFound {
		return err
	}
	if err := os.Remove(s.path(name)); err != nil {
		return host.Errorf(host.ConfigError, "state %s cannot be deleted: %v", name, err)
	}
	return nil
}

func (s stateStore) names() (names []string) {
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), stateExt); ok && e.Type().IsRegular() {
			names = append(names, name)
		}
	}
	return names
}

// list returns the states that can be read, by name.
func (s stateStore) list() []stateLine {
	lines := []stateLine{}
	for _, name := range s.names() {
		saved, err := s.read(name)
		if err != nil {
			continue
		}
		used := saved.Saved
		if info, err := os.Stat(s.path(name)); err == nil {
			used = info.ModTime().UTC()
		}
		lines = append(lines, saved.line(used))
	}
	return lines
}
