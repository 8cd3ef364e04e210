package policy

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestExplain(t *testing.T) {
	p := load(t, `[defaults]
timeout = "30s"
[callers."mcp:*"]
deny = ["github.delete"]
[callers."mcp:claude"]
confirm = ["effect:write"]
[plugin.github]
isolate = "process"
[plugin.github.limits]
memory_mib = 64
[plugin.github.settings]
org = "parley"
`, `[plugin.github]
digest = "`+digestA+`"
grants = [
  "fs:ro:/srv/data=/data",
  "http:GET:https://*.github.com",
  "tool:cdp.Page.*",
  "clock",
]
[plugin.other]
digest = "`+digestB+`"
grants = ["tool:github.*"]
`)
	m := &manifest.Manifest{
		Name: "github",
		Capabilities: manifest.Capabilities{
			FS: []manifest.FSCapability{{Path: "/data", Mode: "rw", Why: "keeps a\ncache"}},
			HTTP: []manifest.HTTPCapability{{URL: "https://api.github.com", Methods: []string{"GET", "POST"},
				Why: "reads issues"}},
			Tools: []manifest.NamedCapability{{Name: "cdp.Page.navigate"}, {Name: "cdp.Browser.*", Optional: true}},
			Env:   []manifest.NamedCapability{{Name: "LANG", Optional: true}},
		},
		Tools: []manifest.Tool{{Name: "delete", Effect: "destructive"}, {Name: "list", Effect: "read"}, {Name: "create",
			Effect: "write"}},
	}
	info := host.Info{Name: "github", Digest: digestA}
	golden(t, "explain.txt", p.Explain(info, m, "").String())
	golden(t, "explain_tool.txt", p.Explain(info, m, "create").String())
	info.Digest = digestB
	golden(t, "explain_other_digest.txt", p.Explain(info, m, "delete").String())
	golden(t, "explain_default.txt", Default().Explain(host.Info{Name: "text", Digest: digestA},
		&manifest.Manifest{Tools: []manifest.Tool{{Name: "hash", Effect: "read"}}}, "hash").String())

	for _, tt := range []struct {
		name, policy, lacks string
		grants              bool
		isolate, note       string
	}{
		{"default", "", "", false, "process", ""},
		{"default, the kernel cannot", "", "no seccomp", false, "none",
			"own process, because it cannot be isolated here: no s"},
		{"default, the kernel cannot with folders", "", "no Landlock", true, "none", "no Landlock"},
		{"default, no folder is granted", "", "no Landlock", false, "process", ""},
		{"written", "[defaults]\nisolate = \"process\"\n", "no seccomp", false, "process",
			"it does not run: isolate = \"process\""},
		{"call", "[defaults]\nisolate = \"call\"\n", "no seccomp", false, "call", "it does not run"},
		{"none", "[defaults]\nisolate = \"none\"\n", "no seccomp", false, "none", ""},
	} {
		text := tt.policy
		if tt.grants {
			text += "[plugin.p]\ndigest = \"" + digestA + "\"\ngrants = [\"fs:ro:/srv/data=/data\"]\n"
		}
		p := load(t, text, "")
		p.env.NotIsolated = func(folders bool) []string {
			if tt.lacks == "" || strings.Contains(tt.lacks, "Landlock") && !folders {
				return nil
			}
			return []string{tt.lacks}
		}
		x := p.Explain(host.Info{Name: "p", Digest: digestA}, &manifest.Manifest{Capabilities: manifest.Capabilities{
			FS: []manifest.FSCapability{{Path: "/data", Mode: "ro", Optional: true}}}}, "")
		notes := strings.Join(x.Notes, "\n")
		if x.Isolate != tt.isolate || !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
			t.Errorf("%s: isolate %s, notes %q", tt.name, x.Isolate, notes)
		}
	}

	over := load(t, "[plugin.p]\ndigest = \""+digestA+"\"\ngrants = [\"clock\"]\n",
		"[plugin.p]\ndigest = \""+digestA+"\"\ngrants = [\"random\", \"env:LANG\"]\n")
	x := over.Explain(host.Info{Name: "p", Digest: digestA}, &manifest.Manifest{}, "")
	text := strings.Join(x.Notes, "\n")
	for _, want := range []string{"clock (policy.toml:3) has no effect",
		"the 2 grants in grants.toml:1 are ignored: policy.toml:3 sets grants"} {
		if !strings.Contains(text, want) {
			t.Errorf("notes %q do not contain %q", text, want)
		}
	}
	// A grant whose callee has another owner by now is not one that the manifest does not request.
	foreign := load(t, "", "[plugin.p]\ndigest = \""+digestA+"\"\ngrants = [\"tool:text.hash\", \"tool:text.find\"]\n"+
		"[plugin.p.owners]\ntext = \"shipped\"\n")
	foreign.env.Owner = func(string) (identity, displaced string) { return digestB, "" }
	x = foreign.Explain(host.Info{Name: "p", Digest: digestA},
		&manifest.Manifest{Capabilities: manifest.Capabilities{Tools: []manifest.NamedCapability{{Name: "text.*"}}}}, "")
	if len(x.Unused) != 2 || !strings.Contains(x.Unused[0].Note, "now it belongs to the unsigned build "+digestB) {
		t.Errorf("%+v", x.Unused)
	}
	if data, err := json.Marshal(x); err != nil || strings.Contains(string(data), "null") {
		t.Errorf("%s, %v", data, err)
	}
}
