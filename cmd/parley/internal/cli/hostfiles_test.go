package cli

import (
	"os"
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
