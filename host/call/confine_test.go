package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/protect"
)

// browser is a plugin whose tools declare which of their parameters hold URLs and files.
const browser = `{
  "manifest": 1, "name": "web", "version": "1.0.0", "kind": "parley/1", "docs": {"brief": "Drive a browser"},
  "tools": [
    {"name": "go", "docs": {"brief": "Open a page"}, "effect": "read", "reach": "page", "url": ["/url", "/more/urls"],
     "params": {"type": "object", "properties": {"url": {"type": "string"}, "more": {"type": "object"},
       "note": {"type": "string"}, "x": {"type": "number"}}}},
    {"name": "upload", "docs": {"brief": "Give files to a page"}, "effect": "read", "reach": "machine",
     "files": ["/files", "/data/files"], "params": {"type": "object", "properties": {"files": {}, "data": {"type": "object"}}}},
    {"name": "save", "docs": {"brief": "Save a file"}, "effect": "write", "reach": "machine", "files": ["/to"],
     "params": {"type": "object", "properties": {"to": {"type": "string", "x-saved": true}}}},
    {"name": "plain", "docs": {"brief": "Name no file"}, "effect": "read",
     "params": {"type": "object", "properties": {"url": {"type": "string"}}}}
  ]
}`

// confined returns a function that calls a tool of the plugin web as a caller. It returns the parameters that reached
// the tool, or the error.
func confined(t *testing.T, grant grant.Grant, folders []string,
) func(caller, tool, params string) (string, *host.Error) {
	web := newFake(t, browser, nil)
	var inner struct{ tool, params string }
	outer := newFake(t, outerNamed("one"), map[string]handler{
		"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
			return callTool(ctx, r, inner.tool, json.RawMessage(inner.params), "")
		}})
	h := newHost(t, call.Config{Own: &protect.Files{}, Policy: policy(func(a host.Ask) (host.Decision, error) {
		d := host.Decision{Verdict: host.Allow}
		if a.Plugin == "one" {
			d.Grant = grant
		}
		if strings.HasPrefix(a.Principal.Name, "mcp:") {
			d.Files = folders
		}
		return d, nil
	})}, web, outer)
	return func(who, tool, params string) (string, *host.Error) {
		before := len(web.requests())
		call := host.Call{Name: "web." + tool, Params: json.RawMessage(params), Principal: caller.Principal{Name: who}}
		if who == "plugin:one" {
			inner.tool, inner.params = call.Name, params
			call.Name, call.Params, call.Principal.Name = "one.echo", nil, "cli"
		}
		a, _ := h.Call(t.Context(), call)
		made := web.requests()[before:]
		if (a.Err == nil) != (len(made) == 1) {
			t.Errorf("%s: %s %s: %v, and the tool ran %d times", who, tool, params, a.Err, len(made))
		}
		if a.Err != nil && a.Err.Code != host.Denied && len(a.Err.Steps) == 0 {
			t.Errorf("%s: %s %s: %v leads nowhere", who, tool, params, a.Err)
		}
		if a.Err != nil || len(made) == 0 {
			return "", a.Err
		}
		return string(made[0].Params), nil
	}
}

func TestConfineURLs(t *testing.T) {
	const person, client, plugin = "cli", "mcp:some", "plugin:one"
	everybody, others := []string{person, client, plugin}, []string{person, client}
	call := confined(t, grant.Grant{HTTP: []grant.HTTP{{URL: "http://a"}, {URL: "https://*.b.test:8443"}}}, nil)
	for _, c := range []struct {
		tool, params string
		may          []string
	}{
		{"go", `{"url":"http://a/"}`, everybody},
		{"go", `{"url":"HTTP://A/x?y"}`, everybody},
		{"go", `{"url":"https://x.b.test:8443/"}`, everybody},
		{"go", `{"url":"about:blank"}`, everybody},
		{"go", `{"url":""}`, everybody},
		{"go", `{"note":"file:///etc/passwd"}`, everybody},
		{"plain", `{"url":"file:///etc/passwd"}`, everybody},
		{"go", `{"url":"http://b/"}`, others},
		{"go", `{"url":"http://a:81/"}`, others},
		{"go", `{"url":"https://a/"}`, others},
		{"go", `{"url":"http://a@b/"}`, others},
		{"go", `{"more":{"urls":["http://a/","http://b/"]}}`, others},
		{"go", `{"url":"file:///etc/passwd"}`, []string{person}},
		{"go", `{"url":" file:///etc/passwd"}`, []string{person}},
		{"go", `{"url":"\u0001file:///etc/passwd"}`, nil},
		{"go", `{"url":"fi\nle:///etc/passwd"}`, nil},
		{"go", `{"url":"view-source:http://a/"}`, []string{person}},
		{"go", `{"url":"chrome://version"}`, []string{person}},
		{"go", `{"url":"data:text/html,x"}`, []string{person}},
		{"go", `{"url":"javascript:alert(1)"}`, []string{person}},
		{"go", `{"more":{"urls":["http://a/","file:///etc/passwd"]}}`, []string{person}},
		{"go", `{"more":{"urls":[["file:///etc/passwd"]]}}`, []string{person}},
		{"go", `{"more":{"urls":{"a":"file:///"}}}`, []string{person}},
		{"go", `{"url":"http://a/","url":"file:///etc/passwd"}`, nil},
	} {
		for _, by := range everybody {
			got, err := call(by, c.tool, c.params)
			switch may := slices.Contains(c.may, by); {
			case !may && err == nil:
				t.Errorf("%s may call %s %s", by, c.tool, c.params)
			case !may && !slices.Contains([]host.Code{host.Denied, host.InvalidArgs, host.InvalidURL}, err.Code):
				t.Errorf("%s: %s %s: %v", by, c.tool, c.params, err)
			case may && err != nil:
				t.Errorf("%s may not call %s %s: %v", by, c.tool, c.params, err)
			case may && !equalJSON(t, got, c.params):
				t.Errorf("%s: %s %s became %s", by, c.tool, c.params, got)
			}
		}
	}
	_, err := call(plugin, "go", `{"url":"http://b/page"}`)
	if err == nil || len(err.Denied) != 1 || err.Denied[0].Right != "http:GET:http://b" {
		t.Errorf("the denial is %+v", err)
	}
	const numbers = `{"x":0.1000000000000000055511151231257827,"url":"http://a/"}`
	if got, err := call(client, "go", numbers); err != nil || !strings.Contains(got, "0.1000000000000000055511151231") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestConfineFiles(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ro", "rw", "outside", "up"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file, upload := filepath.Join(dir, "ro", "file"), filepath.Join(dir, "up", "file")
	for _, f := range []string{file, upload} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"inner": file, "outer": filepath.Join(dir, "outside")} {
		if err := os.Symlink(to, filepath.Join(dir, "ro", link)); err != nil {
			t.Skip("links cannot be made here: ", err)
		}
	}
	call := confined(t, grant.Grant{FS: []grant.FS{
		{Path: "/data", Source: filepath.Join(dir, "ro"), Mode: "ro"},
		{Path: "/out", Source: filepath.Join(dir, "rw"), Mode: "rw"},
		{Path: "/kernel", Source: "/proc", Mode: "ro"},
	}}, []string{filepath.Join(dir, "up")})
	const person, client, plugin = "cli", "mcp:some", "plugin:one"
	files := func(path string) string { return `{"files":["` + path + `"]}` }
	for _, c := range []struct {
		params string
		may    []string
		want   string // the parameters that reach the tool, if they differ
	}{
		{files("/data/file"), []string{person, plugin}, files(file)},
		{`{"files":"/data/file"}`, []string{person, plugin}, `{"files":"` + file + `"}`},
		{files("/data/inner"), []string{person, plugin}, files(file)},
		{files(file), []string{person, plugin}, ""},
		{files("/out"), []string{person, plugin}, files(filepath.Join(dir, "rw"))},
		{`{"data":{"files":["/data/file"]}}`, []string{person, plugin}, `{"data":` + files(file) + `}`},
		{files(upload), []string{person, client}, ""},
		{files(filepath.Join(dir, "up")), []string{person}, ""},
		{files("/data"), []string{person}, ""}, // a folder must be writable
		{files("/data/outer/x"), []string{person}, ""},
		{files("/data/outer"), []string{person}, ""},
		{files("/data/../etc/passwd"), []string{person}, ""},
		{files("/database"), []string{person}, ""},
		{files("/etc/passwd"), []string{person}, ""},
		{files("etc/passwd"), []string{person}, ""},
		{files("/dev/null"), []string{person}, ""},
		{files("/kernel/self/environ"), []string{person}, ""},
		{files(""), []string{person}, ""},
		{files("/data/none"), []string{person}, ""},
		{`{"files":["/data/file","/etc/passwd"]}`, []string{person}, ""},
		{`{"files":{"a":"/etc/passwd"}}`, []string{person}, ""},
		{`{"files":[7]}`, []string{person}, ""},
		{`{"data":{"files":["/etc/passwd"]}}`, []string{person}, ""},
		{`{"data":{"items":[]}}`, []string{person, client, plugin}, ""},
		{`{}`, []string{person, client, plugin}, ""},
	} {
		for _, by := range []string{person, client, plugin} {
			got, err := call(by, "upload", c.params)
			want := c.want
			if want == "" || by == person {
				want = c.params
			}
			switch may := slices.Contains(c.may, by); {
			case !may && err == nil:
				t.Errorf("%s may upload %s", by, c.params)
			case !may && err.Code != host.Denied && err.Code != host.InvalidArgs:
				t.Errorf("%s: %s: %v", by, c.params, err)
			case may && err != nil:
				t.Errorf("%s may not upload %s: %v", by, c.params, err)
			case may && !equalJSON(t, got, want):
				t.Errorf("%s: %s became %s, want %s", by, c.params, got, want)
			}
		}
	}
}

// TestDeniedFilesLeadOn checks that what a denied file leads on to would help: a grant that the manifest asks for, the
// setting of the operator, or neither where a folder cannot be granted.
func TestDeniedFilesLeadOn(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	const asks = `"capabilities": {"http": [{"url": "https://*.b.test", "why": "x"}],`
	const asksNothing = `"x-capabilities": {`
	for _, c := range []struct{ manifest, tool, params, step, says string }{
		{asks, "upload", `{"files":["` + dir + `/x"]}`, "policy grant one fs:ro:" + dir + "=/data", ""},
		{asks, "upload", `{"files":["/proc/self/environ"]}`, "policy explain one", ""},
		{asksNothing, "upload", `{"files":["` + dir + `/x"]}`, "policy explain one", "does not ask for it"},
		{asks, "go", `{"url":"https://a.b.test/x"}`, "policy grant one http:GET:https://a.b.test", ""},
		{asks, "go", `{"url":"https://c.test/x"}`, "policy explain one", "does not ask for it"},
	} {
		outer := newFake(t, strings.Replace(outerNamed("one"), `"capabilities": {`, c.manifest, 1), map[string]handler{
			"echo": func(ctx context.Context, r *host.Request) (*job.Result, error) {
				return callTool(ctx, r, "web."+c.tool, json.RawMessage(c.params), "")
			}})
		h := newHost(t, call.Config{}, newFake(t, browser, nil), outer)
		a := makeCall(t, h, "one.echo", "{}")
		e := failsWith(t, a, host.Denied)
		if len(a.Steps) != 1 || a.Steps[0].String() != c.step || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s %s: %q, %s; want %s and %q", c.tool, c.params, a.Steps, e.Message, c.step, c.says)
		}
	}
	call := confined(t, grant.Grant{}, []string{dir})
	for name, says := range map[string]string{
		"/srv/up/x":  `; the operator can add "/srv/up" to files in [callers."mcp:some"] of policy.toml`,
		"/proc/x":    "; the policy cannot list its folder",
		dir + "/out": "clients can name files, not folders",
	} {
		if _, err := call("mcp:some", "upload", `{"files":["`+name+`"]}`); !strings.Contains(err.Message, says) {
			t.Errorf("%s: %s", name, err.Message)
		}
	}
}

// TestRefusalsOfListedFolders names all that a folder can hold, for a client for which the policy lists the folder. A
// refusal has its own reason: it never advises to list a folder that is listed.
func TestRefusalsOfListedFolders(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for _, name := range []string{"up", "up/sub", "other"} {
		if err := os.Mkdir(in(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"up/own", "up/file", "other/own", "other/file"} {
		if err := os.WriteFile(in(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) == "own" {
			if _, err := protect.Read(in(name), 10); err != nil { // from now on Parley reads it
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(os.Symlink("own", in("up/soft")), os.Link(in("up/own"), in("up/hard")),
		os.Symlink(in("other/own"), in("up/out-own")), os.Link(in("other/own"), in("up/hard-out")),
		os.Symlink(in("other/file"), in("up/out")), os.Symlink("file", in("up/inside")),
		os.Symlink(in("other"), in("up/out-folder")), os.Symlink("nowhere", in("up/dangling"))); err != nil {
		t.Skip("links cannot be made here: ", err)
	}
	fs := grant.Grant{FS: []grant.FS{{Path: "/data", Source: in("up"), Mode: "ro"}}}
	call := confined(t, fs, []string{in("up"), in("gone")})
	const own, link, missing = "it is a file that Parley reads or writes itself", "it is a link out of that folder",
		"does not exist"
	wants := map[string]string{
		"up/file": "", "up/inside": "", "up/own": own, "up/soft": own, "up/hard": own, "up/hard-out": own, "up/out-own": own,
		"up/out": link, "up/out-folder/file": link, "up/dangling": missing, "up/none": missing,
		"up/sub": "clients can name files, not folders", "gone/x": missing,
	}
	for name, says := range wants {
		for _, by := range []string{"mcp:some", "plugin:one"} {
			_, err := call(by, "upload", `{"files":["`+in(name)+`"]}`)
			switch {
			case by == "plugin:one" && (name == "gone/x" || name == "up/sub"): // the plugin has no such grant
			case (err == nil) != (says == "") || err != nil && !strings.Contains(err.Message, says):
				t.Errorf("%s: %s: %v, want %q", by, name, err, says)
			case err != nil && (strings.Contains(err.Message, "can add") || strings.Contains(err.Message, "requires a grant")):
				t.Errorf("%s: %s: %v", by, name, err)
			}
		}
	}
}

// TestRootWithOwnFiles names files in a root that holds a folder of Parley: all but Parley's own, by whatever name.
// What the refusals advise leaves out folders that the policy cannot list.
func TestRootWithOwnFiles(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(in("root/home/config"), 0o700), os.MkdirAll(in("root/home/other"), 0o700),
		os.Mkdir(in("more"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"root/a", "root/home/config/own", "root/home/config/single",
		"root/home/other/b", "root/secret", "more/c"} {
		if err := os.WriteFile(in(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := protect.Read(in("root/secret"), 10); err != nil { // from now on Parley reads it
		t.Fatal(err)
	}
	if err := errors.Join(os.Link(in("root/home/config/own"), in("root/hard")),
		os.Symlink(in("root/home/config/own"), in("root/soft")), os.Symlink(in("more"), in("root/out"))); err != nil {
		t.Skip("links cannot be made here: ", err)
	}
	h := newHost(t, call.Config{
		Own:    &protect.Files{Folders: []protect.Folder{{Name: "config", Path: in("root/home/config")}}},
		Policy: policy(func(host.Ask) (host.Decision, error) { return host.Decision{Verdict: host.Allow}, nil })},
		newFake(t, browser, nil))
	const own, folder = "it is a file that Parley reads or writes itself", "whose files no call can name"
	for _, c := range []struct{ tool, name, says string }{
		{"upload", "root/a", ""}, {"upload", "root/home/other/b", ""}, {"upload", "root/home/config/single", folder},
		{"upload", "root/secret", own}, {"upload", "root/hard", own}, {"upload", "root/soft", own},
		{"upload", "root/out/c", "it is a link out of"}, {"upload", "root/home", "clients can name files, not folders"},
		{"upload", "more/c", `, nor in a root of the client; nothing was run; the operator can add "` + in("more") +
			`" to files in [callers."mcp:some"] of policy.toml`},
		{"save", "root/new", "it is in a root of the client, which allows only reading"},
	} {
		params, _ := json.Marshal(map[string]any{"files": []string{in(c.name)}})
		if c.tool == "save" {
			params, _ = json.Marshal(map[string]any{"to": in(c.name)})
		}
		roots := func() ([]string, bool) { return []string{"/", in("root")}, true }
		a, _ := h.Call(t.Context(), host.Call{Name: "web." + c.tool, Params: params,
			Principal: caller.Principal{Name: "mcp:some", Roots: roots}})
		says := ""
		if a.Err != nil {
			says = a.Err.Message
		}
		if (says == "") != (c.says == "") || !strings.Contains(says, c.says) {
			t.Errorf("%s %s: %s, want %s", c.tool, c.name, says, c.says)
		}
	}
}

func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var texts [2]string
	for i, text := range []string{a, b} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(v)
		texts[i] = string(raw)
	}
	return texts[0] == texts[1]
}

// TestOutside checks that a built-in tool without a declared reach counts as reaching outside a page.
func TestOutside(t *testing.T) {
	told := strings.Replace(browser, `"name": "web"`, `"name": "built"`, 1)
	c := catalogOf(t, newFake(t, browser, nil), newFake(t, told, nil).builtin())
	for pattern, want := range map[string]bool{
		"web.go": false, "web.upload": true, "web.plain": false, "built.plain": true, "built.go": false, "WEB.Up*": true,
		"web.*": false, "built.p*": true, "none.*": false, "web.none": false, "*": false, "web*": false,
	} {
		if got := c.Outside(pattern); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}

// FuzzConfine checks that a plugin can only open http and https URLs, however it writes them.
func FuzzConfine(f *testing.F) {
	f.Add([]byte(`{"url":"http://a/","url":"file:///etc/passwd"}`))
	f.Add([]byte(`{"\u0075rl":"\tfile:///etc/passwd"}`))
	f.Add([]byte(`{"url":{"url":"file:///"}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		call := confined(t, grant.Grant{HTTP: []grant.HTTP{{URL: "http://a"}}}, nil)
		reached, err := call("plugin:one", "go", string(params))
		if err != nil {
			return
		}
		var sent struct {
			URL string `json:"url"`
		}
		if err := json.Unmarshal([]byte(reached), &sent); err != nil {
			t.Fatalf("%s: %v", reached, err)
		}
		if u := strings.ToLower(sent.URL); u != "" && u != "about:blank" && !strings.HasPrefix(u, "http://a") {
			t.Errorf("%q became %q", params, sent.URL)
		}
	})
}

// TestConfineSaves names files to make: a person anywhere, a client in the folders of its rule, a plugin in those that
// it was granted to write to. A refusal says which folder the operator can allow.
func TestConfineSaves(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	for _, name := range []string{"ro", "rw", "outside", "up", "up/sub"} {
		if err := os.Mkdir(in(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(in("outside"), in("up", "link")); err != nil {
		t.Skip("links cannot be made here: ", err)
	}
	call := confined(t, grant.Grant{FS: []grant.FS{
		{Path: "/data", Source: in("ro"), Mode: "ro"}, {Path: "/out", Source: in("rw"), Mode: "rw"},
	}}, []string{in("up")})
	const person, client, plugin = "cli", "mcp:some", "plugin:one"
	for _, c := range []struct{ by, path, want string }{
		{person, in("outside", "a"), in("outside") + "//a"},
		{client, in("up", "a"), in("up") + "//a"}, {client, in("up"), in("up") + "//."},
		{client, in("up", "sub", "a"), in("up") + "//sub/a"}, {client, in("up") + "/", in("up") + "//."},
		{plugin, "/out/a", in("rw") + "//a"}, {plugin, in("rw", "a"), in("rw") + "//a"},
		{client, in("up", "link", "a"), ""}, {client, in("up", "..", "a"), ""}, {client, in("up", "none", "a"), ""},
		{client, "a", ""}, {client, in("outside", "a"), ""}, {plugin, "/data/a", ""}, {plugin, in("up", "a"), ""},
	} {
		params, _ := json.Marshal(map[string]string{"to": c.path})
		got, err := call(c.by, "save", string(params))
		if want := `{"to":"` + c.want + `"}`; c.want != "" && (err != nil || got != want) {
			t.Errorf("%s: %s: %s, %v", c.by, c.path, got, err)
		}
		if c.want == "" && err == nil {
			t.Errorf("%s may save %s", c.by, c.path)
		}
	}
	_, err2 := call(client, "save", `{"to":"`+in("outside", "a")+`"}`)
	if want := `the operator can add "` + in("outside") + `" to files in [callers."mcp:some"]`; err2 == nil ||
		!strings.Contains(err2.Message, want) {
		t.Errorf("%v, want %s", err2, want)
	}
}
