package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/sdk"
)

func newPluginNew(app *command.App) *cobra.Command {
	opts := &pluginNewOptions{app: app}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a plugin: a folder with source, manifest and SDK",
		Long: "Makes the folder NAME with a small plugin and the SDK of the language. It builds, checks and installs as\n" +
			"it is, without a network.",
		Example: "parley plugin new hello --lang c\nparley plugin build hello",
		RunE:    command.RunWith(runPluginNew, opts, &opts.Name),
	}
	cmd.Flags().StringVar(&opts.Lang, "lang", "", strings.Join(languageNames(), ", "))
	command.CompleteWords(cmd, "lang", languageNames()...)
	return cmd
}

func runPluginNew(_ context.Context, opts *pluginNewOptions) error {
	data, err := newPlugin(opts.app, *opts)
	if err != nil {
		return err
	}
	next := []string{"parley plugin build " + data.Dir}
	return opts.app.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Made %s: %s\nNext: %s\n", data.Dir, strings.Join(data.Files, ", "), next[0])
	})
}

// pluginNewOptions say what plugin to begin.
type pluginNewOptions struct {
	app  *command.App
	Name string // of the plugin, and of the folder that is made in the current one
	Lang string // one of Languages
}

// languageNames returns the languages in which a plugin can begin.
func languageNames() []string { return []string{"go", "rust", "c", "js"} }

// newPluginData is the folder that was made.
type newPluginData struct {
	Dir   string   `json:"dir"`
	Name  string   `json:"name"`
	Lang  string   `json:"lang"`
	Files []string `json:"files"` // in Dir
}

// newPlugin makes a folder with the source of a small plugin, with the SDK, which builds, checks and installs as it is.
func newPlugin(app *command.App, o pluginNewOptions) (*newPluginData, error) {
	if !slices.Contains(languageNames(), o.Lang) {
		given := "no --lang was given"
		if o.Lang != "" {
			given = "--lang " + manifest.CleanLine(o.Lang) + " is not a language that plugin new knows"
		}
		return nil, host.Errorf(host.InvalidArgs, "%s; expected go, rust, c or js. Other languages implement the ABI "+
			"(sdk/abi.md) and are packed", given).
			WithSteps(host.OperatorStep(host.OpPluginNew, o.Name, "--lang", "go"))
	}
	template, err := fs.ReadFile(sdk.Templates, "templates/"+sourceManifest)
	if err != nil {
		return nil, err
	}
	described := bytes.ReplaceAll(template, []byte("NAME"), []byte(o.Name))
	if o.Lang == "js" {
		described = bytes.Replace(described, []byte(`"kind": "parley/1"`),
			[]byte(`"kind": "script",`+"\n"+` "engine": {"name": "js", "version": "1"}`), 1)
	}
	if _, err := manifest.Parse(described, parley.Version); err != nil || len(o.Name) > 40 {
		return nil, host.Errorf(host.InvalidArgs, "%s is not the name of a plugin; expected at most 40 letters, digits, "+
			"hyphens and underscores, a letter first, without \"__\"", manifest.CleanLine(o.Name)).
			WithSteps(host.OperatorStep(host.OpHelp, "plugin new"))
	}
	if manifest.Reserved(o.Name) {
		return nil, host.Errorf(host.AlreadyExists, "%s is the name of a command, which no plugin can have", o.Name).
			WithSteps(host.OperatorStep(host.OpHelp, "plugin new"))
	}
	if err := os.Mkdir(o.Name, 0o755); errors.Is(err, fs.ErrExist) {
		return nil, host.Errorf(host.AlreadyExists, "%s exists already; nothing was written", o.Name).
			WithSteps(host.OperatorStep(host.OpPluginBuild, o.Name))
	} else if err != nil {
		return nil, host.Errorf(host.Unavailable, "cannot make the folder: %v", err)
	}
	data := &newPluginData{Dir: o.Name, Name: o.Name, Lang: o.Lang}
	write := func(name string, content []byte) error {
		data.Files = append(data.Files, name)
		return os.WriteFile(filepath.Join(o.Name, name), content, 0o644)
	}
	files, err := fs.ReadDir(sdk.Templates, "templates/"+o.Lang)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := fs.ReadFile(sdk.Templates, path.Join("templates", o.Lang, f.Name()))
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(f.Name(), ".txt") // which keeps Go from compiling it in the SDK
		if err := write(name, bytes.ReplaceAll(text, []byte("NAME"), []byte(o.Name))); err != nil {
			return nil, err
		}
	}
	switch o.Lang {
	case "go":
		data.Files = append(data.Files, "go.mod", goSDKFolder)
		err = writeGoModule(o.Name)
	case "rust":
		err = errors.Join(write("parley.rs", sdk.Rust), write(sourceManifest, described))
	case "c":
		err = errors.Join(write("parley.h", sdk.C), write(sourceManifest, described))
	case "js":
		err = errors.Join(write("parley.d.ts", sdk.JS), write(sourceManifest, described))
	}
	return data, err
}
