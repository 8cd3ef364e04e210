package policy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/manifest"
)

func TestSecret(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs and modes of Unix")
	}
	dir := t.TempDir()
	path := func(name, text string, mode os.FileMode) string {
		p := filepath.Join(dir, name)
		must(t, os.WriteFile(p, []byte(text), mode))
		must(t, os.Chmod(p, mode))
		return p
	}
	store := secret.Store{Dir: filepath.Join(dir, "store")}
	must(t, store.Set("KEPT", "kept value\n"))
	must(t, store.Set("OPEN", "v"))
	must(t, os.Chmod(filepath.Join(store.Dir, "secret-"+"OPEN"), 0o640))
	text := `
[secrets.ENV]
from = "env:LANG"
[secrets.UNSET]
from = "env:NONE"
[secrets.BLANK]
from = "env:EMPTY"
[secrets.FILE]
from = "file:` + path("file", "from file\r\n", 0o600) + `"
[secrets.SHARED]
from = "file:` + path("shared", "topsecret", 0o666) + `"
[secrets.GONE]
from = "file:` + filepath.Join(dir, "gone") + `"
[secrets.FOLDER]
from = "file:` + dir + `"
[secrets.LONG]
from = "file:` + path("long", strings.Repeat("x", secret.Max+1), 0o600) + `"
[secrets.KEPT]
from = "store"
[secrets.CMD]
from = "cmd:printf '%s|%s' 'a b' c"
[secrets.FAILS]
from = "cmd:sh -c 'echo topsecret >&2; echo topsecret; exit 3'"
[secrets.NOPROGRAM]
from = "cmd:/does/not/exist x"
[secrets.HERE]
from = "cmd:cat file"
[secrets.FLOOD]
from = "cmd:head -c 10000000 /dev/zero"
`
	p, err := Load(folderOf(t, text, ""), Env{LookupEnv: testEnv.LookupEnv, Store: store.Dir})
	t.Chdir(dir) // no program opens its files
	must(t, err)
	tests := []struct{ name, want, wantErr string }{
		{"ENV", "C.UTF-8", ""},
		{"UNSET", "", "NONE is not set (policy.toml:5)"},
		{"BLANK", "", "is empty"},
		{"FILE", "from file", ""},
		{"SHARED", "", "everybody can write to it"},
		{"GONE", "", "no such file"},
		{"FOLDER", "", "expected a regular file, found a folder"},
		{"LONG", "", "longer than"},
		{"KEPT", "kept value", ""},
		{"OPEN", "", "others may read it"},
		{"CMD", "a b|c", ""},
		{"FAILS", "", "exit status 3"},
		{"NOPROGRAM", "", "no such file"},
		{"HERE", "", "exit status 1"},
		{"FLOOD", "", "longer than"},
		{"NOWHERE", "", "no secret of that name"},
		{"../store/secret-KEPT", "", "no secret store"},
	}
	for _, tt := range tests {
		got, err := p.Secret(context.Background(), tt.name)
		if got != tt.want || (err != nil) != (tt.wantErr != "") {
			t.Errorf("%s: got %q, %v", tt.name, got, err)
		}
		if err == nil {
			continue
		}
		if host.AsError(err).Code != host.ConfigError || !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("%s: got %v, want ...%s...", tt.name, err, tt.wantErr)
		}
		if strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: the value is in the error: %v", tt.name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Secret(ctx, "CMD"); err == nil {
		t.Error("a program runs although the context has ended")
	}
	if _, err := Default().Secret(context.Background(), "X"); err == nil {
		t.Error("a secret was returned without a store")
	}
}

func TestStore(t *testing.T) {
	s := secret.Store{Dir: filepath.Join(t.TempDir(), "a", "store")}
	if names, err := s.Names(); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
	must(t, s.Set("B", "1"))
	must(t, s.Set("A", "2"))
	must(t, s.Set("A", "3"))
	if v, err := secret.Fetch(t.Context(), "A", "store", nil, s); v != "3" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{s.Dir: 0o700, filepath.Join(s.Dir, "secret-"+"A"): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	if names, err := s.Names(); err != nil || !reflect.DeepEqual(names, []string{"A", "B"}) {
		t.Errorf("%v, %v", names, err)
	}
	for _, tt := range []struct {
		name, value string
		code        host.Code
	}{{"a", "1", host.AlreadyExists}, {"../A", "1", host.InvalidArgs}, {"", "1", host.InvalidArgs}, {"C", "",
		host.InvalidArgs}, {"C", strings.Repeat("x", secret.Max+1), host.InvalidArgs}} {
		if err := s.Set(tt.name, tt.value); err == nil || host.AsError(err).Code != tt.code {
			t.Errorf("%q: got %v, want %s", tt.name, err, tt.code)
		}
	}
	must(t, s.Remove("A"))
	if err := s.Remove("A"); host.AsError(err).Code != host.NotFound {
		t.Errorf("got %v", err)
	}
	if _, err := (secret.Store{}).Names(); err == nil {
		t.Error("names were listed without a store")
	}
}

// TestRefusesReflection checks whether a binding refuses responses that contain its secret.
func TestRefusesReflection(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, PolicyFile), []byte(`
[secrets.A]
from = "store"
reflect = "refuse"
[secrets.B]
from = "store"
reflect = "allow"
[secrets.C]
from = "store"
`), 0o600))
	p, err := Load(dir, Env{})
	must(t, err)
	for name, want := range map[string]bool{"A": true, "B": false, "C": false, "D": false} {
		if got := p.RefusesReflection(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	invalid := []byte("[secrets.A]\nfrom = \"store\"\nreflect = \"no\"\n")
	must(t, os.WriteFile(filepath.Join(dir, PolicyFile), invalid, 0o600))
	if _, err := Load(dir, Env{}); err == nil || !strings.Contains(err.Error(), "policy.toml:3:11") {
		t.Errorf("%v", err)
	}
}

// TestSecretOrigins checks to which origins secrets are bound, and that lists of secrets show them.
func TestSecretOrigins(t *testing.T) {
	p := load(t, `[secrets.A]
from = "store"
origins = ["https://A.test:443", "http://127.0.0.1:8080"]
[secrets.B]
from = "store"
`, "")
	for name, want := range map[string]string{"A": "https://a.test http://127.0.0.1:8080", "B": "", "C": ""} {
		if got, err := p.SecretOrigins(name); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	all, err := p.Secrets()
	must(t, err)
	if len(all) != 2 || len(all[0].Origins) != 2 || len(all[1].Origins) != 0 {
		t.Errorf("listed %+v", all)
	}
	builtin := host.Info{Name: "cdp", Kind: manifest.KindBuiltin}
	for tool, told := range map[string]bool{"": true, "type": true, "open": false} {
		text := p.Explain(builtin, nil, tool).String()
		if strings.Contains(text, "secret A may be typed into pages of https://a.test, http://127.0.0.1:8080") != told {
			t.Errorf("the explanation of %q: %s", tool, text)
		}
	}
	for _, origin := range []string{"a.test", "https://a.test/", "https://*.a.test", "file:///", ""} {
		dir := t.TempDir()
		text := "[secrets.A]\nfrom = \"store\"\norigins = [\"" + origin + "\"]\n"
		must(t, os.WriteFile(filepath.Join(dir, PolicyFile), []byte(text), 0o600))
		if _, err := Load(dir, Env{}); err == nil || !strings.Contains(err.Error(), "policy.toml:3:12") {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

// TestHeldSecrets checks which values the host knows without a call that uses them.
func TestHeldSecrets(t *testing.T) {
	dir := t.TempDir()
	file, store := filepath.Join(dir, "token"), secret.Store{Dir: filepath.Join(dir, "store")}
	must(t, os.WriteFile(file, []byte("of a file\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, PolicyFile), fmt.Appendf(nil, `
[secrets.FILE]
from = "file:%[1]s"
[secrets.GONE]
from = "file:%[1]s.gone"
[secrets.ENV]
from = "env:HELD"
[secrets.CMD]
from = "cmd:echo of a program"
`, file), 0o600))
	for name, value := range map[string]string{"STORED": "of the store", "SHORT": "1234567"} {
		must(t, store.Set(name, value))
	}
	p, err := Load(dir, Env{Store: store.Dir, LookupEnv: func(string) (string, bool) { return "of a variable", true }})
	must(t, err)
	want := map[string]string{"FILE": "of a file", "ENV": "of a variable", "STORED": "of the store"}
	if got := p.HeldSecrets(t.Context()); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOrigins reads what the files say of origins; policy.toml comes first.
func TestOrigins(t *testing.T) {
	pin := "pin:sha256/" + strings.Repeat("A", 43) + "="
	hand := "[origins.\"https://a.test\"]\ntls = \"" + pin + "\"\n[origins.\"HTTPS://B.test:443\"]\ntls = \"any\"\n" +
		"login = \"secret:LOGIN\"\n[secrets.LOGIN]\nfrom = \"env:LOGIN\"\n"
	made := "[origins.\"https://a.test\"]\ntls = \"any\"\nlogin = \"secret:LOGIN\"\n" +
		"[origins.\"http://c.test:81\"]\nlogin = \"secret:NONE\"\n"
	p, err := Load(folderOf(t, hand, made), Env{LookupEnv: func(string) (string, bool) { return "ada:pw", true }})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ of, tls, login string }{
		{"https://a.test", pin, ""}, {"https://b.test", "any", "ada:pw"}, {"https://b.test:444", "", ""},
		{"http://b.test", "", ""}, {"http://c.test:81", "", "an error"}, {"https://x.a.test", "", ""}, {"", "", ""},
	} {
		tls, err := p.OriginTLS(c.of)
		login, failed := p.OriginLogin(t.Context(), c.of)
		if failed != nil {
			login = "an error"
		}
		if err != nil || tls != c.tls || login != c.login {
			t.Errorf("%s: %q, %q, %v", c.of, tls, login, err)
		}
	}
	all, err := p.Matches(catalogOfThree(t))
	if err != nil || len(all) < 3 || all[0].Rule != `[secrets.LOGIN]` || all[0].First[0] != "https://b.test" ||
		all[1].First[0] != "tls "+pin {
		t.Errorf("%+v, %v", all, err)
	}
}
