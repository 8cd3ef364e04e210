// Package tree finds the working tree whose Parley is measured, and builds it.
package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// module is the first line of the go.mod in the root of the tree.
const module = "module github.com/parley-tools/parley\n"

// Root returns the absolute path of the root of the tree that holds the current folder.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if bytes.HasPrefix(data, []byte(module)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in a working tree of Parley", start)
		}
	}
}

// Enter makes the root of the tree the current folder, so that paths mean the same wherever a command is started.
func Enter() error {
	root, err := Root()
	if err != nil {
		return err
	}
	return os.Chdir(root)
}

// Build compiles the parley of the tree into a folder and returns the path of the binary, as [Install] leaves it. The
// go command gets options in front of the package.
func Build(ctx context.Context, folder string, options ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	binary, err := filepath.Abs(filepath.Join(folder, "parley.exe")) // a name that every system runs
	if err != nil {
		return "", err
	}
	linked := binary + ".linked"
	defer os.Remove(linked)
	args := append([]string{"build", "-o", linked}, options...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/parley")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as releases are built
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build parley: %w\n%s", err, out)
	}
	return binary, Install(linked, binary)
}

// Install copies a binary as an installer does. One that the linker has just written is in small pieces in the kernel's
// cache, and every process of it takes a millisecond more.
func Install(linked, binary string) error {
	content, err := os.ReadFile(linked)
	if err != nil {
		return err
	}
	return os.WriteFile(binary, content, 0o755)
}
