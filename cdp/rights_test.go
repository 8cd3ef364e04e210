package cdp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
)

func TestConfine(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ro", "rw", "outside"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "ro", "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"inner": file, "outer": filepath.Join(dir, "outside")} {
		if err := os.Symlink(to, filepath.Join(dir, "ro", link)); err != nil {
			t.Skip("links cannot be made here: ", err)
		}
	}
	grant := host.Grant{
		FS: []host.FSGrant{
			{Path: "/data", Source: filepath.Join(dir, "ro"), Mode: "ro"},
			{Path: "/out", Source: filepath.Join(dir, "rw"), Mode: "rw"},
		},
		Tools: []string{"cdp.*", "cdp.Novel.named"},
	}
	const person, client, plugin = "cli", "mcp:some", "plugin:one"
	everybody := []string{person, client, plugin}
	files := func(path string) string { return `{"files":["` + path + `"]}` }
	downloads := func(behavior, path string) string {
		return `{"behavior":"` + behavior + `","downloadPath":"` + path + `"}`
	}
	p := New(Config{})
	for _, c := range []struct {
		tool, params string
		may          []string
		want         string // the plugin's parameters, if they differ from the given ones
	}{
		{"Page.navigate", `{"url":"http://a/"}`, everybody, ""},
		{"Page.navigate", `{"url":"HTTPS://a/"}`, everybody, ""},
		{"Page.navigate", `{"url":"about:blank"}`, everybody, ""},
		{"Page.navigate", `{"url":"file:///etc/passwd"}`, []string{person}, ""},
		{"Page.navigate", `{"url":" file:///etc/passwd"}`, []string{person}, ""},
		{"Page.navigate", `{"url":"\u0001file:///etc/passwd"}`, []string{person}, ""},
		{"Page.navigate", `{"url":"fi\nle:///etc/passwd"}`, []string{person}, ""},
		{"Page.navigate", `{"url":"view-source:http://a/"}`, []string{person}, ""},
		{"Page.navigate", `{"url":"chrome://version"}`, []string{person}, ""},
		{"Page.navigate", `{"url":"data:text/html,x"}`, []string{person}, ""},
		{"Page.navigate", `{"url":"javascript:alert(1)"}`, []string{person}, ""},
		{"Page.navigate", `{"url":"http://a/","url":"file:///etc/passwd"}`, []string{person}, ""},
		{"Page.navigate", `{"url":"file:///etc/passwd","url":"http://a/"}`, everybody, `{"url":"http://a/"}`},
		{"Page.navigate", `{"url":"file:///x","\u0075rl":"http://a/"}`, everybody, `{"url":"http://a/"}`},
		{"Target.createTarget", `{"url":"file:///etc/passwd"}`, []string{person}, ""},
		{"Network.loadNetworkResource", `{"url":"file:///etc/passwd"}`, []string{person}, ""},
		{"Fetch.continueRequest", `{"requestId":"1","url":"file:///etc/passwd"}`, []string{person}, ""},
		{"Fetch.continueRequest", `{"requestId":"1","url":"http://a/"}`, everybody, ""},
		{"Page.getResourceContent", `{"frameId":"1","url":"data:text/css,x"}`, everybody, ""},
		{"Runtime.evaluate", `{"expression":"location = 'file:///etc/passwd'"}`, everybody, ""}, // Chrome refuses it

		{"open", `{"url":"file:///etc/passwd"}`, []string{person}, ""},
		{"open", `{"headed":true}`, everybody, ""},
		{"open", `{"chrome":"/bin/sh"}`, []string{person}, ""},
		{"open", `{"user_data_dir":"/home"}`, []string{person}, ""},
		{"open", `{"attach":"9222"}`, []string{person, client}, ""},

		{"DOM.setFileInputFiles", files("/data/file"), everybody, files(file)},
		{"DOM.setFileInputFiles", files("/data/inner"), everybody, files(file)},
		{"DOM.setFileInputFiles", files(file), everybody, ""},
		{"DOM.setFileInputFiles", files("/data/outer/x"), []string{person, client}, ""},
		{"DOM.setFileInputFiles", files("/data/outer"), []string{person, client}, ""},
		{"DOM.setFileInputFiles", files("/data/../etc/passwd"), []string{person, client}, ""},
		{"DOM.setFileInputFiles", files("/database"), []string{person, client}, ""},
		{"DOM.setFileInputFiles", files("/etc/passwd"), []string{person, client}, ""},
		{"DOM.setFileInputFiles", files("etc/passwd"), []string{person, client}, ""},
		{"DOM.setFileInputFiles", files(""), []string{person, client}, ""},
		{"DOM.setFileInputFiles", files("/data/none"), []string{person, client}, ""},
		{"DOM.setFileInputFiles", `{"files":["/data/file","/etc/passwd"]}`, []string{person, client}, ""},
		{"DOM.setFileInputFiles", `{"files":"/etc/passwd"}`, []string{person, client}, ""},
		{"DOM.setFileInputFiles", `{"files":[["/etc/passwd"]]}`, []string{person, client}, ""},
		{"DOM.setFileInputFiles", `{}`, []string{person, client}, ""},
		{"Input.dispatchDragEvent", `{"data":{"files":["/etc/passwd"]}}`, []string{person, client}, ""},
		{"Input.dispatchDragEvent", `{"data":{"files":["/data/file"]}}`, everybody, `{"data":` + files(file) + `}`},
		{"Input.dispatchDragEvent", `{"data":{"files":["/etc/passwd"],"files":[]}}`, everybody, `{"data":{"files":[]}}`},
		{"Input.dispatchDragEvent", `{"data":{"items":[]}}`, everybody, ""},

		{"Browser.setDownloadBehavior", downloads("allow", "/out"), everybody, downloads("allow", filepath.Join(dir, "rw"))},
		{"Browser.setDownloadBehavior", downloads("allow", "/data"), []string{person, client}, ""},
		{"Browser.setDownloadBehavior", downloads("allowAndName", "/etc"), []string{person, client}, ""},
		{"Browser.setDownloadBehavior", downloads("default", "/out"), []string{person, client}, ""},
		{"Browser.setDownloadBehavior", `{"behavior":"allow"}`, []string{person, client}, ""},
		{"Browser.setDownloadBehavior", `{"behavior":"deny"}`, everybody, ""},
		{"Page.setDownloadBehavior", downloads("allow", "/etc"), []string{person, client}, ""},

		{"Input.dispatchKeyEvent", `{"type":"keyDown","key":"v","windowsVirtualKeyCode":86}`, everybody, ""},
		{"Input.dispatchKeyEvent", `{"type":"keyDown","commands":["selectAll"]}`, everybody, ""},
		{"Input.dispatchKeyEvent", `{"type":"keyDown","commands":["paste"]}`, []string{person, client}, ""},
		{"Input.dispatchKeyEvent", `{"type":"keyDown","commands":["copy","PasteAndMatchStyle"]}`, []string{person, client},
			""},
		{"Input.dispatchKeyEvent", `{"type":"rawKeyDown","modifiers":2,"windowsVirtualKeyCode":86}`, []string{person, client},
			""},
		{"Input.dispatchKeyEvent", `{"type":"rawKeyDown","modifiers":10.0,"windowsVirtualKeyCode":8.6e1}`,
			[]string{person, client}, ""},
		{"Input.dispatchKeyEvent", `{"type":"rawKeyDown","modifiers":8,"windowsVirtualKeyCode":45}`, []string{person, client},
			""},

		{"Novel.reach", `{}`, []string{person, client}, ""},
		{"Novel.named", `{}`, everybody, ""},
	} {
		for _, by := range everybody {
			r := &host.Request{Tool: c.tool, Params: json.RawMessage(c.params), Caller: by}
			if by == plugin {
				r.CallerGrant = grant
			}
			got, err := p.confine(r)
			may := strings.Contains(strings.Join(c.may, " "), by)
			switch {
			case !may && err == nil:
				t.Errorf("%s may %s %s", by, c.tool, c.params)
			case !may:
				if code := host.AsError(err).Code; code != host.Denied && code != host.InvalidArgs && code != host.InvalidURL {
					t.Errorf("%s: %s %s ends in %s: %v", by, c.tool, c.params, code, err)
				}
			case err != nil:
				t.Errorf("%s may not %s %s: %v", by, c.tool, c.params, err)
			case by == person && string(got.Params) != c.params:
				t.Errorf("the person's %s became %s", c.params, got.Params)
			case by == plugin:
				want := c.want
				if want == "" {
					want = c.params
				}
				if !sameJSON(t, string(got.Params), want) {
					t.Errorf("%s %s became %s, want %s", c.tool, c.params, got.Params, want)
				}
			}
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
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

// TestCallersOfTheKeeper checks what the keeper learns about callers.
func TestCallersOfTheKeeper(t *testing.T) {
	grant := host.Grant{
		FS:   []host.FSGrant{{Path: "/a", Source: "/srv/a", Mode: "ro"}, {Path: "/b", Source: "/srv/b", Mode: "rw"}},
		HTTP: []host.HTTPGrant{{URL: "https://a.test"}},
	}
	for caller, want := range map[string]keeper.Caller{
		"cli":        {Name: "cli"},
		"mcp:some":   {Name: "mcp:some"},
		"plugin:one": {Name: "plugin:one", Digest: "sha256:1", Folders: []string{"/srv/b"}, HTTP: grant.HTTP},
	} {
		if got := callerOf(&host.Request{Caller: caller, CallerDigest: "sha256:1",
			CallerGrant: grant}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", caller, got, want)
		}
	}
}

// TestNumbersAreUnchanged checks that numbers keep their spelling.
func TestNumbersAreUnchanged(t *testing.T) {
	p := New(Config{})
	const params = `{"x":12345678901234567890,"y":0.1000000000000000055511151231257827,"z":1e400}`
	got, err := p.confine(&host.Request{Tool: "Input.dispatchMouseEvent", Params: json.RawMessage(params),
		Caller: "mcp:some"})
	if err != nil || string(got.Params) != params {
		t.Errorf("%s, %v", got.Params, err)
	}
}

// FuzzConfine checks that a plugin can only open http and https URLs, however it writes them.
func FuzzConfine(f *testing.F) {
	f.Add([]byte(`{"url":"http://a/","url":"file:///etc/passwd"}`))
	f.Add([]byte(`{"\u0075rl":"\tfile:///etc/passwd"}`))
	f.Add([]byte(`{"url":{"url":"file:///"}}`))
	p := New(Config{})
	f.Fuzz(func(t *testing.T, params []byte) {
		r, err := p.confine(&host.Request{Tool: "Page.navigate", Params: params, Caller: "plugin:one"})
		if err != nil {
			return
		}
		var sent struct {
			URL any `json:"url"`
		}
		if err := json.Unmarshal(r.Params, &sent); err != nil {
			t.Fatalf("%s: %v", r.Params, err)
		}
		text, isText := sent.URL.(string)
		scheme, _, _ := strings.Cut(strings.ToLower(text), ":")
		if isText && text != "" && text != "about:blank" && scheme != "http" && scheme != "https" {
			t.Errorf("%q became %q", params, text)
		}
	})
}
