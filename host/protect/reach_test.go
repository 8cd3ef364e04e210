package protect

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestOwnFilesOutOfReach tries every way to grant a folder of the host: by name, from above, from below, by links and
// before it exists.
func TestOwnFilesOutOfReach(t *testing.T) {
	home := t.TempDir()
	at := func(name string) string { return filepath.Join(home, filepath.FromSlash(name)) }
	for _, dir := range []string{"user/.config/parley", "user/.data/parley/secrets", "user/work/deep", "elsewhere"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"to-config": at("user/.config/parley"),
		"to-secrets": at("user/.data/parley/secrets"), "to-user": "user", "to-work": "user/work", "elsewhere/up": "../user"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Skipf("symbolic links are not supported: %v", err)
		}
	}
	own := &Files{Folders: []Folder{{Name: "config", Path: at("user/.config/parley")},
		{Name: "data", Path: at("user/.data/parley")},
		{Name: "cache", Path: at("user/.cache/parley")}}}
	refused := []string{
		"user", "user/.config", "user/.config/parley", "user/.data/parley/secrets", "user/.data/parley/new",
		"user/.cache", "user/.cache/parley", "user/.cache/parley/wasm", "to-config", "to-secrets", "to-user", "elsewhere/up",
		"elsewhere/up/.config", "", "user/work/..", "to-work/..",
	}
	for _, name := range refused {
		var out *OutOfReachError
		if err := own.Check(at(name), false); !errors.As(err, &out) || out.Instead == "" {
			t.Errorf("%q can be granted: %v", name, err)
		}
	}
	for _, name := range []string{"user/work", "user/work/deep", "user/work/new", "elsewhere", "to-work", "to-work/deep",
		"user/.config/other", "user/.config/parley-other"} {
		if err := own.Check(at(name), false); err != nil {
			t.Errorf("%q cannot be granted: %v", name, err)
		}
	}
	var none *Files
	if none.Check(home, false) != nil || none.Check("/", false) == nil {
		t.Error("without own files only the root is out of reach")
	}
	if runtime.GOOS == "linux" {
		for _, dir := range []string{"/proc", "/proc/self", "/proc/self/root/nothing", "/sys", "/sys/kernel", "/dev",
			"/dev/fd"} {
			if none.Check(dir, false) == nil {
				t.Errorf("%s can be granted", dir)
			}
		}
		if err := os.Symlink("/proc", at("to-proc")); err != nil || none.Check(at("to-proc"), false) == nil {
			t.Errorf("a link to /proc can be granted (%v)", err)
		}
	}
}

// TestFileGuardDenies checks that hard links to own files and files that hold secrets are recognized.
func TestFileGuardDenies(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no identity")
	}
	dir, data := t.TempDir(), t.TempDir()
	write := func(path string) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy, token, plain := filepath.Join(dir, "policy.toml"), filepath.Join(data, "token"), filepath.Join(data, "plain")
	write(policy)
	write(token)
	write(plain)
	deep := filepath.Join(dir, "deep", "record")
	if err := os.Mkdir(filepath.Dir(deep), 0o700); err != nil {
		t.Fatal(err)
	}
	write(deep)
	for from, to := range map[string]string{policy: "linked-policy", plain: "linked-plain", deep: "linked-deep"} {
		if err := os.Link(from, filepath.Join(data, to)); err != nil {
			t.Skipf("hard links are not supported: %v", err)
		}
	}
	own := &Files{Folders: []Folder{{Name: "config", Path: dir}},
		Secrets: func() []string { return []string{token} }}
	for name, want := range map[string]bool{"linked-policy": true, "linked-deep": true, "token": true, "plain": false,
		"linked-plain": false} {
		info, err := os.Stat(filepath.Join(data, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := own.Guard().Denies(info); got != want {
			t.Errorf("%s: denied %v", name, got)
		}
		if got := own.Guard().Load().Denies(info); got != want {
			t.Errorf("%s, loaded: denied %v", name, got)
		}
	}
}

// TestSecretFolders checks that no folder is writable through which the path of a secret or of a program leads,
// whatever links are on the way: moved aside, the secret would be an ordinary file. The same holds for files to which
// links in the host's folders lead.
func TestSecretFolders(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no identity")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(base, filepath.FromSlash(name)) }
	for _, dir := range []string{"named", "second", "third/below", "plain", "bin", "names", "stowed",
		"dotfiles"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"named/token": "../second/link", "second/link": at("to-third/token"),
		"to-third": "third", "to-second": "second", "names/config": "../stowed", "to-names": "names",
		"stowed/policy.toml": "../dotfiles/policy.toml"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Skipf("symbolic links are not supported: %v", err)
		}
	}
	for _, file := range []string{"third/token", "dotfiles/policy.toml"} {
		if err := os.WriteFile(at(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := &Files{Folders: []Folder{{Name: "config", Path: at("names/config"), Links: true}},
		Secrets:  func() []string { return []string{at("named/token"), at("nowhere/token")} },
		Programs: []string{at("bin/program")}}
	info, err := os.Stat(at("dotfiles/policy.toml"))
	if err != nil || !own.Guard().Denies(info) {
		t.Errorf("the file to which a link of the host leads can be opened (%v)", err)
	}
	for folder, writable := range map[string]bool{"to-names": false, "dotfiles": false, "named": false, "second": false,
		"to-second": false,
		"bin":       false, "third": false, "to-third": false, "third/below": true, "plain": true} {
		if err := own.Check(at(folder), true); (err == nil) != writable {
			t.Errorf("%q may be granted to be written: %v, %v", folder, !writable, err)
		}
		if err := own.Check(at(folder), false); err != nil {
			t.Errorf("%q cannot be granted to be read: %v", folder, err)
		}
	}
}
