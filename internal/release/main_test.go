package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"testing"
)

// TestArchive checks the content of both formats, and that packing twice produces the same bytes.
func TestArchive(t *testing.T) {
	t.Chdir("../..") // where LICENSE and README.md are
	for _, c := range []struct {
		goos, want string
		list       func(*testing.T, []byte) []string
		files      []string
	}{
		{"linux", "parley_1.2.3_linux_arm64.tar.gz", listTar, []string{
			"parley_1.2.3_linux_arm64/LICENSE -rw-r--r--", "parley_1.2.3_linux_arm64/README.md -rw-r--r--",
			"parley_1.2.3_linux_arm64/parley -rwxr-xr-x"}},
		{"windows", "parley_1.2.3_windows_arm64.zip", listZip, []string{
			"parley_1.2.3_windows_arm64/LICENSE -rw-r--r--", "parley_1.2.3_windows_arm64/README.md -rw-r--r--",
			"parley_1.2.3_windows_arm64/parley.exe -rwxr-xr-x"}},
	} {
		name, packed, err := archive(c.goos, "arm64", "1.2.3", []byte("binary"))
		if err != nil {
			t.Fatal(err)
		}
		_, again, err := archive(c.goos, "arm64", "1.2.3", []byte("binary"))
		if err != nil || !bytes.Equal(packed, again) {
			t.Errorf("%s differs from one run to the next (%v)", name, err)
		}
		if name != c.want {
			t.Errorf("name %s, want %s", name, c.want)
		}
		if got := c.list(t, packed); !slices.Equal(got, c.files) {
			t.Errorf("%s contains %q, want %q", name, got, c.files)
		}
	}
}

func listTar(t *testing.T, packed []byte) (names []string) {
	g, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(g); ; {
		h, err := r.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name+" "+h.FileInfo().Mode().String())
	}
}

func listZip(t *testing.T, packed []byte) (names []string) {
	r, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		names = append(names, f.Name+" "+f.Mode().String())
	}
	return names
}
