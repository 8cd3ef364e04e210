// Package npm fetches the packages of others that benchmarks run, by the lock file of the benchmark.
package npm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Fetch returns the folder of the npm packages of a benchmark, such as peers, and installs them first if they are
// missing or not those of its lock. The root of the tree has to be the current folder.
func Fetch(ctx context.Context, benchmark string) (modules string, err error) {
	folder, err := filepath.Abs(filepath.Join("bench", benchmark))
	if err != nil {
		return "", err
	}
	modules = filepath.Join(folder, "node_modules")
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		return "", err
	}
	mark := filepath.Join(modules, ".fetched")
	if fetched, err := os.ReadFile(mark); err == nil && slices.Equal(fetched, lock) {
		return modules, nil
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci in %s: %w\n%s", folder, err, out)
	}
	return modules, os.WriteFile(mark, lock, 0o644)
}

// AgentBrowser copies the native binary of agent-browser, which its package starts from a script, to a folder, and
// returns its path and the environment in which it uses a browser and a home of its own.
func AgentBrowser(modules, bin, home, chrome string) (path string, env []string, err error) {
	platform := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	native, err := os.ReadFile(filepath.Join(modules, "agent-browser", "bin", "agent-browser-"+platform))
	path = filepath.Join(bin, "agent-browser")
	return path, []string{
		"HOME=" + home, "AGENT_BROWSER_EXECUTABLE_PATH=" + chrome, "AGENT_BROWSER_ARGS=--no-sandbox",
		"AGENT_BROWSER_SKILLS_DIR=" + filepath.Join(modules, "agent-browser", "skill-data"),
	}, errors.Join(err, os.WriteFile(path, native, 0o700))
}
