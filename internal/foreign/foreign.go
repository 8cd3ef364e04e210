// Package foreign finds the third-party programs that testdata/programs pins for tests, and a Node to run them.
package foreign

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// oldestNode is the oldest major version of Node that all programs run on.
const oldestNode = 22

// Fetch returns the folder of the npm packages, and fetches them first if they are missing. root is the repository.
func Fetch(root string) (modules string, err error) {
	out, err := exec.Command("bash", filepath.Join(root, ".ci", "programs")).CombinedOutput()
	modules = filepath.Join(root, "testdata", "programs", "node_modules")
	if _, missing := os.Stat(filepath.Join(modules, ".fetched")); missing != nil {
		return "", fmt.Errorf("the packages of testdata/programs are missing and cannot be fetched with bash and npm: %w\n%s",
			errors.Join(err, missing), out)
	}
	return filepath.Abs(modules)
}

// Node returns the Node among the packages, or else the one in PATH. It fails if that Node is too old.
func Node(modules string) (string, error) {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	pinned := filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node")
	if _, err := os.Stat(pinned); err == nil {
		return pinned, nil
	}
	out, err := exec.Command("node", "--version").Output()
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	if n, _ := strconv.Atoi(major); err != nil || n < oldestNode {
		return "", fmt.Errorf("node in PATH is %q; expected %d or newer", strings.TrimSpace(string(out)), oldestNode)
	}
	return "node", nil
}

// ForTest is [Fetch] for a test. The test is skipped if the packages are not available; with CI=true it fails instead.
func ForTest(t testing.TB, root string) (modules string) {
	t.Helper()
	modules, err := Fetch(root)
	orSkip(t, err)
	return modules
}

// NodeForTest returns the packages and a Node for them, and skips or fails as [ForTest] does.
func NodeForTest(t testing.TB, root string) (modules, node string) {
	t.Helper()
	modules = ForTest(t, root)
	node, err := Node(modules)
	orSkip(t, err)
	return modules, node
}

func orSkip(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// Registry is [StartRegistry] for a test. The test is skipped, or fails with CI=true, if there is no registry.
func Registry(t testing.TB) (address string) {
	t.Helper()
	_, err := exec.LookPath("docker-registry")
	orSkip(t, err)
	stop, address, err := StartRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}

// StartRegistry starts Debian's docker-registry on a free port, with its content in a folder, and waits until it
// serves.
func StartRegistry(dir string) (stop func(), address string, err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	address = free.Addr().String()
	_ = free.Close()
	config := filepath.Join(dir, "config.yml")
	text := "version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: " + filepath.Join(dir, "data") +
		"}}\nhttp: {addr: \"" + address + "\"}\n"
	if err = os.MkdirAll(dir, 0o700); err == nil {
		err = os.WriteFile(config, []byte(text), 0o600)
	}
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command("docker-registry", "serve", config)
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if response, err := http.Get("http://" + address + "/v2/"); err == nil {
			_ = response.Body.Close()
			return stop, address, nil
		}
	}
	stop()
	return nil, "", errors.New("docker-registry did not start")
}
