package protect

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMountedOwnFolders checks that a grant reaches no own folder, and no file of one, that is mounted elsewhere.
func TestMountedOwnFolders(t *testing.T) {
	const table = `21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:20 / /proc rw - proc proc rw
23 21 8:1 /home/user/.config/parley /work/config rw - ext4 /dev/sda1 rw
24 21 8:1 /home/user/.config/parley/policy.toml /single/a\040file rw - ext4 /dev/sda1 rw
25 21 8:1 /home /all rw - ext4 /dev/sda1 rw
26 21 8:2 / /other rw - ext4 /dev/sdb1 rw
27 21 8:2 /keys /home/user/.data/parley/secrets rw - ext4 /dev/sdb1 rw
28 21 8:1 /srv/token /tokens/token rw - ext4 /dev/sda1 rw
29 21 0:40 / /tmp/scratch rw - tmpfs tmpfs rw
`
	all := parseMounts(table)
	own := &Files{Folders: []Folder{{Name: "config", Path: "/home/user/.config/parley"},
		{Name: "data", Path: "/home/user/.data/parley"}},
		Secrets: func() []string { return []string{"/srv/token"} }}
	for folder, want := range map[string][2]string{
		"/work":        {"config", "config"}, // below it
		"/work/config": {"config", "config"}, // the folder itself
		"/single":      {"config", "config"}, // one file of it
		"/all":         {"config", "config"}, // what contains it
		"/other":       {"data", "data"},     // what is mounted inside it
		"/other/keys":  {"data", "data"},
		"/other/rest":  {}, "/work/plain": {}, "/tmp": {}, "/srv/below": {},
		"/tokens": {"", "secret"}, "/srv": {"", "secret"}, // to be read, its file cannot be opened
	} {
		for i, writable := range []bool{false, true} {
			got := own.mounted(all, folder, writable)
			if (got == "") != (want[i] == "") || !strings.Contains(got, want[i]) {
				t.Errorf("%s, writable %v: %q, expected %q", folder, writable, got, want[i])
			}
		}
	}
	for _, broken := range []string{"", "1", "1 2 3 4", `1 2 8:1 \ \1`, "\n\n"} {
		own.mounted(parseMounts(broken), "/work", true)
	}
}

// TestMountedForReal mounts an own folder into a granted one, which takes the rights of the administrator.
func TestMountedForReal(t *testing.T) {
	base := t.TempDir()
	config, work := filepath.Join(base, "config"), filepath.Join(base, "work")
	inner := filepath.Join(work, "inner")
	for _, dir := range []string{filepath.Join(config, "deep"), inner} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	own := &Files{Folders: []Folder{{Name: "config", Path: config}}}
	if err := own.Check(work, true); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{config, filepath.Join(config, "deep")} {
		if err := syscall.Mount(source, inner, "", syscall.MS_BIND, ""); err != nil {
			t.Skipf("cannot mount: %v", err)
		}
		for _, folder := range []string{work, inner} {
			if err := own.Check(folder, false); err == nil {
				t.Errorf("%s can be granted with %s mounted at %s", folder, source, inner)
			}
		}
		if err := syscall.Unmount(inner, 0); err != nil {
			t.Fatal(err)
		}
	}
}
