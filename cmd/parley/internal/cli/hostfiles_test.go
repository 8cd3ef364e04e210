package cli

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

// fileOptions are the options that name a file which the host does not read for itself: a value of a caller, a plugin
// to look at, or what is written.
var fileOptions = []string{
	"out", "params", "param", "load", "from", "import", "dataset", "tools", "eval", "signature", "manifest",
	"stdin", "output", "file", "name", // of plugin wrap: what a program in a guest reads and writes
}

// TestFileOptions checks that every option which names a file is read by the loader of the files of the host, which
// registers them, or is known to need no protection.
func TestFileOptions(t *testing.T) {
	source, err := os.ReadFile("../command/hostfiles.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?i)\bfiles?\b|@file`)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		check := func(f *pflag.Flag) {
			isFile := names.MatchString(f.Usage) || strings.HasSuffix(f.Name, "-file")
			if isFile && f.Value.Type() != "bool" && !slices.Contains(fileOptions, f.Name) &&
				!regexp.MustCompile(`HostFile = ".*--`+f.Name+`\b`).Match(source) {
				t.Errorf("%s --%s (%s) is read by no loader that protects the file", cmd.CommandPath(), f.Name, f.Usage)
			}
		}
		cmd.LocalFlags().VisitAll(check)
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot(newFront(&command.Streams{Env: func(string) string { return "" }}, nil), nil))
}

// TestHostFilesAreRemembered checks that each file which the host is told of, or writes for itself, is out of the reach
// of plugins when the first command that names it ends, whatever that command comes to.
func TestHostFilesAreRemembered(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../command/hostfiles.go")
	if err != nil {
		t.Fatal(err)
	}
	parley, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := filepath.Abs("../../../../testdata/wasm/rev.wasm")
	if err != nil {
		t.Fatal(err)
	}
	serve := []string{"mcp", "--http", "127.0.0.1:0"}
	lines := map[string][][]string{ // FILE is the file, EMPTY another one
		"mcp --token-file":            {append(serve, "--token-file", "FILE")},
		"mcp --tls-cert":              {append(serve, "--tls-cert", "FILE", "--tls-key", "EMPTY")},
		"mcp --tls-key":               {append(serve, "--tls-cert", "EMPTY", "--tls-key", "FILE")},
		"plugin sign --key":           {{"plugin", "sign", plugin, "--key", "FILE"}},
		"plugin sign --new-key":       {{"plugin", "sign", "--no-password", "--new-key", "FILE"}},
		"plugin sign --password-file": {{"plugin", "sign", "--new-key", "NEW", "--password-file", "FILE"}},
		"plugin verify --key":         {{"plugin", "verify", plugin, "--signature", "EMPTY", "--key", "FILE"}},
		"--record, --replay": {{"docs", "phrases", "text.count", "--record", "FILE"},
			{"docs", "phrases", "text.count", "--replay", "FILE"}},
	}
	var options []string
	for _, found := range regexp.MustCompile(`HostFile = "(.*)"`).FindAllStringSubmatch(string(source), -1) {
		options = append(options, found[1])
	}
	slices.Sort(options)
	if known := slices.Sorted(maps.Keys(lines)); !slices.Equal(options, known) {
		t.Fatalf("the options are %q, and there are lines for %q", options, known)
	}
	for option, all := range lines {
		for _, line := range all {
			dir := t.TempDir()
			file := filepath.Join(dir, "file")
			for _, name := range []string{"file", "empty"} {
				if name == "file" && option == "plugin sign --new-key" {
					continue // the command makes it
				}
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			words := strings.NewReplacer("FILE", file, "EMPTY", filepath.Join(dir, "empty"), "NEW", filepath.Join(dir, "new"))
			args := make([]string, len(line))
			for i, word := range line {
				args[i] = word
				if word == strings.ToUpper(word) {
					args[i] = words.Replace(word)
				}
			}
			cmd := exec.Command(parley, args...)
			cmd.Env = append(os.Environ(), "PARLEY_HOME="+filepath.Join(dir, "home"))
			out, _ := cmd.CombinedOutput() // most end with what is wrong with an empty file
			remembered, _ := os.ReadFile(filepath.Join(dir, "home", "state", "named"))
			if !strings.Contains(string(remembered), fmt.Sprintf("%q\n", file)) {
				t.Errorf("%s: the file is not remembered: %q\n%s", option, remembered, out)
			}
		}
	}
}
