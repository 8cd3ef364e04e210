package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-tools/parley/internal/testhome"
)

// TestFullDisk fills the disk of a service. The service says that it is not ready, answers calls as the policy wants,
// and goes on without a restart when there is room again. The records stay whole.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a disk")
	}
	unshare := program(t, "unshare")
	for audit, last := range map[string]string{"on": hashOfA, "required": "no space left"} { // what a full disk answers
		t.Run(audit, func(t *testing.T) {
			home, dir, port := testhome.New(t), t.TempDir(), freePort(t)
			write(t, filepath.Join(home, "config/policy.toml"), fmt.Sprintf("[operator]\naudit = %q\n", audit))
			write(t, filepath.Join(dir, "tokens"), "alice="+token+"\n")
			config := filepath.Join(dir, "parleyd.toml")
			write(t, config, fmt.Sprintf("listen = [\"127.0.0.1:%s\"]\ntoken_file = \"%s/tokens\"\n", port, dir))
			disk := filepath.Join(t.TempDir(), "disk")
			const script = `set -e
mount -t tmpfs -o size=16m,mode=700 tmpfs "$2"
mkdir -p "$2/cache/wasm"
cp -r "$1/config" "$2"
mount --bind "$1/cache/wasm" "$2/cache/wasm" # compiled code
PARLEY_HOME=$2 exec "$3" serve --config "$4"`
			if err := os.Mkdir(disk, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(unshare, "--mount", "sh", "-c", script, "sh", home, disk, built(t), config)
			run(t, cmd)
			url := "http://127.0.0.1:" + port
			await(t, url+"/readyz")
			if answer := hash(t, url); !strings.Contains(answer, hashOfA) {
				t.Fatalf("before: %s", answer)
			}
			mounted := fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, disk)
			filler := filepath.Join(mounted, "filler")
			if err := os.WriteFile(filler, make([]byte, 32<<20), 0o600); err == nil {
				t.Fatal("the disk has room for more than it should")
			}
			time.Sleep(1100 * time.Millisecond) // a state of readiness counts for a second
			ready, err := http.Get(url + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			said, _ := io.ReadAll(ready.Body)
			ready.Body.Close()
			if ready.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(said), `"records","ok":false`) {
				t.Errorf("full: %d %s", ready.StatusCode, said)
			}
			answer := ""
			for range 16 { // the last page of the file of records has room for some
				answer = hash(t, url)
			}
			if !strings.Contains(answer, last) {
				t.Errorf("full: %s", answer)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			await(t, url+"/readyz")
			if answer := hash(t, url); !strings.Contains(answer, hashOfA) {
				t.Errorf("after: %s", answer)
			}
			records, err := os.ReadFile(filepath.Join(mounted, "state/audit/audit.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(records)) {
				if !json.Valid([]byte(line)) {
					t.Errorf("a record that is not whole: %s", line)
				}
			}
		})
	}
}
