package admit_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/testhome"
)

// renamed returns the path of a copy of the plugin echo under another name, with another version.
func renamed(t *testing.T, name, version string) string {
	t.Helper()
	path := testhome.CopyPlugin(t, fixture("echo"), version)
	file := strings.TrimSuffix(path, ".wasm") + ".manifest.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	m["name"] = name
	if data, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// install installs a plugin that may take its name from another owner.
func install(t *testing.T, p *parley.Parley, path string, replace ...string) (admit.Installed, error) {
	t.Helper()
	i, err := p.Admission().Prepare(t.Context(), path, admit.Options{
		Replace: replace, Accept: []string{"takes-first-place", "look-alike-name"},
	})
	if err != nil {
		return admit.Installed{}, err
	}
	return i.Commit(policy.Edit{})
}

// grantTools grants tools of other plugins to an installed one.
func grantTools(t *testing.T, p *parley.Parley, to admit.Installed, right string) {
	t.Helper()
	rules, err := p.Policy()
	if err != nil {
		t.Fatal(err)
	}
	g, err := policy.ParseGrant(right)
	if err != nil {
		t.Fatal(err)
	}
	edit, err := rules.Grant(to.Name, to.Digest, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Admission().WriteGrants(edit); err != nil {
		t.Fatal(err)
	}
}

// inner calls a tool through the plugin echo. It returns the error of the call, or of the inner one.
func inner(t *testing.T, p *parley.Parley, tool string) string {
	t.Helper()
	a, err := p.Call(t.Context(), "echo.call-tool", map[string]any{"tool": tool, "params": map[string]any{"text": "a"}})
	if err != nil {
		return err.Error()
	}
	var answer struct {
		OK    bool
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(a.Data, &answer); err != nil || !answer.OK {
		return answer.Error.Code + ": " + answer.Error.Message
	}
	return ""
}

// TestStrangerTakesNoName checks that an unsigned plugin cannot take the name of one that Parley ships.
func TestStrangerTakesNoName(t *testing.T) {
	p, err := parley.Open(t.Context(), parley.Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	echo, err := install(t, p, fixture("echo"))
	if err != nil {
		t.Fatal(err)
	}
	grantTools(t, p, echo, "tool:text.*")
	if failed := inner(t, p, "text.hash"); failed != "" {
		t.Fatal(failed)
	}
	for _, name := range []string{"text", "Text", "TEXT"} {
		stranger := renamed(t, name, "99.0.0")
		if _, err := install(t, p, stranger); !errors.Is(err, host.AlreadyExists) {
			t.Errorf("an unsigned plugin was installed as %s: %v", name, err)
		}
		if _, err := install(t, p, stranger, "echo"); !errors.Is(err, host.AlreadyExists) {
			t.Errorf("an unsigned plugin was installed as %s with Replace for another name: %v", name, err)
		}
		loaded := parley.New(parley.Config{Home: testhome.New(t), Plugins: []string{stranger}})
		if _, err := loaded.Catalog(); !errors.Is(err, host.AlreadyExists) {
			t.Errorf("an unsigned plugin was loaded as %s: %v", name, err)
		}
	}
	// A person confirms that it takes the name. A grant of text's tools does not apply to it.
	if _, err := install(t, p, renamed(t, "Text", "99.0.0"), "text"); err != nil {
		t.Fatal(err)
	}
	if failed := inner(t, p, "text.echo"); !strings.Contains(failed, "denied") ||
		!strings.Contains(failed, "belongs to") && !strings.Contains(failed, "the name went from") {
		t.Errorf("a call of the new plugin with the grant of text: %q", failed)
	}
}

// TestGrantsFollowTheOwner replaces a plugin whose tools another one was granted.
func TestGrantsFollowTheOwner(t *testing.T) {
	p, err := parley.Open(t.Context(), parley.Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	echo, err := install(t, p, fixture("echo"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install(t, p, renamed(t, "other", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	grantTools(t, p, echo, "tool:other.echo")
	if failed := inner(t, p, "other.echo"); strings.Contains(failed, "denied") {
		t.Fatal(failed)
	}
	if _, err := install(t, p, renamed(t, "Other", "1.1.0")); err != nil {
		t.Fatal(err)
	}
	const want = "belonged to the unsigned build"
	if failed := inner(t, p, "other.echo"); !strings.Contains(failed, want) {
		t.Errorf("after other was replaced the call returned %q", failed)
	}
	if _, err := p.Admission().Remove("other"); err != nil {
		t.Fatal(err)
	}
	if _, err := install(t, p, renamed(t, "other", "2.0.0")); err != nil {
		t.Fatal(err)
	}
	if failed := inner(t, p, "other.echo"); !strings.Contains(failed, want) {
		t.Errorf("after other was removed and installed the call returned %q", failed)
	}
	// A new grant applies to the new owner.
	grantTools(t, p, echo, "tool:other.echo")
	if failed := inner(t, p, "other.echo"); strings.Contains(failed, "denied") {
		t.Error(failed)
	}
}

// TestUnsignedHits searches for a tool of an unsigned plugin.
func TestUnsignedHits(t *testing.T) {
	p, err := parley.Open(t.Context(), parley.Config{Home: testhome.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	// The same tools have a plugin name that sorts before "text". At equal score the shipped ones come first.
	stranger := filepath.Join(t.TempDir(), "a.wasm")
	wasm, err := os.ReadFile(fixture("echo"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stranger, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("../../plugins/text/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer(`"name": "text"`, `"name": "aaaa"`, "parley text ", "parley aaaa ").
		Replace(string(manifest))
	if err := os.WriteFile(strings.TrimSuffix(stranger, ".wasm")+".manifest.json", []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := install(t, p, stranger); err != nil {
		t.Fatal(err)
	}
	h, err := p.Host()
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := h.Search(t.Context(), caller.Principal{Name: "cli"}, search.Query{Text: "hash of a text", Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Results) < 2 || found.Results[0].Name != "text.hash" || found.Results[0].Unsigned ||
		found.Results[1].Name != "aaaa.hash" || !found.Results[1].Unsigned {
		t.Errorf("found %+v", found.Results)
	}
}

// TestNameReservedLater checks that a plugin that was installed under a name that is reserved since then still works by
// its full name, with a notice, and can be removed.
func TestNameReservedLater(t *testing.T) {
	home := t.TempDir()
	p, err := parley.Open(t.Context(), parley.Config{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install(t, p, renamed(t, "plin", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	p.Close()
	renameInstalled(t, filepath.Join(home, "data", "plugins"), "plin", "plan")

	var notices []string
	p, err = parley.Open(t.Context(), parley.Config{Home: home, Notice: func(s string) { notices = append(notices, s) }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if a, err := p.Call(t.Context(), "plan.echo", map[string]any{"value": 1}); err != nil || string(a.Data) != `{"value":1}` {
		t.Errorf("%v, %v", a, err)
	}
	if all := strings.Join(notices, "\n"); !strings.Contains(all, "plan has a name that Parley reserves") {
		t.Errorf("the notices are %q", notices)
	}
	if _, err := install(t, p, renamed(t, "plan", "1.0.1")); !errors.Is(err, host.AlreadyExists) {
		t.Errorf("a plugin was installed under a reserved name: %v", err)
	}
	if _, err := p.Store().Remove("plan"); err != nil {
		t.Error(err)
	}
}

// renameInstalled gives an installed plugin another name of the same length, as if an older version had installed it.
func renameInstalled(t *testing.T, folderOf, from, to string) {
	t.Helper()
	lock := filepath.Join(folderOf, "lock.json")
	list, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	var entries struct {
		Plugins []store.Entry
	}
	if err := json.Unmarshal(list, &entries); err != nil || len(entries.Plugins) != 1 {
		t.Fatalf("%v: %s", err, list)
	}
	e := entries.Plugins[0]
	folder := func(name, digest string) string {
		return filepath.Join(folderOf, name, strings.TrimPrefix(digest, "sha256:"))
	}
	old := folder(from, e.Digest)
	code, err := os.ReadFile(filepath.Join(old, "plugin.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(old, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), `"name":"`+from+`"`, `"name":"`+to+`"`, 1))
	digest, sum := store.Digest(code, text), sha256.Sum256(text)
	files := map[string][]byte{"plugin.wasm": code, "manifest.json": text}
	if err := os.MkdirAll(folder(to, digest), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder(to, digest), name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := strings.NewReplacer(`"name":"`+from+`"`, `"name":"`+to+`"`, e.Digest, digest,
		e.ManifestSHA256, hex.EncodeToString(sum[:])).Replace(string(list))
	if err := os.WriteFile(lock, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}
