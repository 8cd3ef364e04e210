package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypesAreGenerated fails if sdk/go and package manifest differ.
func TestTypesAreGenerated(t *testing.T) {
	files, err := generate("../../../manifest")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../../go", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("sdk/go/%s differs from package manifest; run go generate ./sdk, then make plugins", name)
		}
	}
}

// TestManifestChanges changes package manifest and expects an error, or the change in the generated files.
func TestManifestChanges(t *testing.T) {
	for name, c := range map[string]struct{ old, new, file, want string }{
		"a new field": {
			"\tMode     string `json:\"mode\"`", "\tDepth int `json:\"depth\"`\n\tMode     string `json:\"mode\"`",
			"types.go", "Depth    int",
		},
		"a new enum value": {`"destructive"`, `"destructive","read_twice"`, "types.go", `ReadTwice   Effect = "read_twice"`},
		"a field of a new type": {"\tWASI         *WASI ", "\tExtra *WASI `json:\"extra\"`\n\tWASI         *WASI ", "",
			"toolForm: field Extra: it is a manifest.WASI, which has no row"},
		"a removed type":  {"type Limits struct", "type Bounds struct", "", "package manifest has no type Limits"},
		"a removed field": {"\tRetry      string", "\tRepeat     string", "", "manifest.ExitCode has no field Retry"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, changed := t.TempDir(), false
			for _, file := range []string{"manifest.go", "schema.json"} {
				raw, err := os.ReadFile(filepath.Join("../../../manifest", file))
				if err != nil {
					t.Fatal(err)
				}
				text := strings.Replace(string(raw), c.old, c.new, 1)
				changed = changed || text != string(raw)
				if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if !changed {
				t.Fatalf("package manifest does not contain %q", c.old)
			}
			files, err := generate(folder)
			if c.file == "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
			} else if err != nil || !strings.Contains(string(files[c.file]), c.want) {
				t.Errorf("%s does not contain %q: %v\n%s", c.file, c.want, err, files[c.file])
			}
		})
	}
}
