// Command release builds Parley for the given platforms (linux/amd64 ...) and packs each with the licence and README
// into dist/, with SHA256SUMS. The same source and toolchain produce the same bytes, on any machine and at any time.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	toolchain       = "go1.26.8"
	command         = "./cmd/parley"
	versionVariable = "github.com/parley-tools/parley.Version"
)

// epoch is the time of every file in an archive: the oldest that zip can store.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func main() {
	version := flag.String("version", "", "the version to release; default: what the source says")
	out := flag.String("out", "dist", "the folder to write")
	flag.Parse()
	if err := run(*version, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, out string, platforms []string) error {
	if len(platforms) == 0 {
		return errors.New("name the platforms, such as linux/amd64")
	}
	if version == "" {
		var err error
		if version, err = sourceVersion(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, platform := range platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("%q is not a platform; expected OS/ARCH, such as linux/amd64", platform)
		}
		binary, err := build(goos, goarch, version)
		if err != nil {
			return err
		}
		name, packed, err := archive(goos, goarch, version, binary)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name), packed, 0o644); err != nil {
			return err
		}
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(packed), name)
		fmt.Print(line)
		sums.WriteString(line)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// sourceVersion returns the version that a parley built from these sources prints.
func sourceVersion() (string, error) {
	out, err := exec.Command("go", "run", command, "version", "--json").Output()
	if err != nil {
		return "", fmt.Errorf("go run %s version: %w", command, err)
	}
	var answer struct{ Data struct{ Version string } }
	if err := json.Unmarshal(out, &answer); err != nil || answer.Data.Version == "" {
		return "", fmt.Errorf("parley version --json printed %q", out)
	}
	return answer.Data.Version, nil
}

func build(goos, goarch, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "parley-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "parley")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X "+versionVariable+"="+version,
		"-o", binary, command)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN="+toolchain, "CGO_ENABLED=0", "GOOS="+goos,
		"GOARCH="+goarch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build for %s/%s: %w", goos, goarch, err)
	}
	return os.ReadFile(binary)
}

// file is an entry of an archive.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// archive packs the files: zip for Windows, tar.gz for other systems. All are in one folder with the name of the
// archive.
func archive(goos, goarch, version string, binary []byte) (name string, packed []byte, err error) {
	folder := fmt.Sprintf("parley_%s_%s_%s", version, goos, goarch)
	program := "parley"
	if goos == "windows" {
		program = "parley.exe"
	}
	files := []file{{folder + "/" + program, 0o755, binary}}
	for _, text := range []string{"LICENSE", "README.md"} {
		data, err := os.ReadFile(text)
		if err != nil {
			return "", nil, err
		}
		files = append(files, file{folder + "/" + text, 0o644, data})
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	var b bytes.Buffer
	if goos == "windows" {
		err = writeZip(&b, files)
		return folder + ".zip", b.Bytes(), err
	}
	err = writeTar(&b, files)
	return folder + ".tar.gz", b.Bytes(), err
}

func writeZip(to io.Writer, files []file) error {
	z := zip.NewWriter(to)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: epoch}
		header.SetMode(f.mode)
		w, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}

func writeTar(to io.Writer, files []file) error {
	g, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(g)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: epoch,
			Format: tar.FormatUSTAR}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), g.Close())
}
