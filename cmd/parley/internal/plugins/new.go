package plugins

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/sdk"
)

var pluginNewCommand = &command.Command[*pluginNewOptions]{
	Use: "new NAME", Run: runPluginNew,
	Short: "Begin a plugin: a folder with source, manifest and SDK",
	Long: "Makes the folder NAME with a small plugin and the SDK of the language. It builds, checks and installs as\n" +
		"it is, without a network.",
	Example: "parley plugin new hello --lang c\nparley plugin build hello",
	Options: map[string]command.Completer{"lang": command.OneOf(languageNames...)},
}

// runPluginNew makes a folder with the source of a small plugin, with the SDK, which builds, checks and installs as it
// is.
func runPluginNew(_ context.Context, app *command.App, opts *pluginNewOptions) error {
	template, err := fs.ReadFile(sdk.Templates, "templates/"+sourceManifest)
	if err != nil {
		return err
	}
	described := bytes.ReplaceAll(template, []byte("NAME"), []byte(opts.Name))
	if opts.Lang == "js" {
		described = bytes.Replace(described, []byte(`"kind": "parley/1"`),
			[]byte(`"kind": "script",`+"\n"+` "engine": {"name": "js", "version": "1"}`), 1)
	}
	if _, err := manifest.Parse(described, parley.Version); err != nil || len(opts.Name) > 40 {
		return host.Errorf(host.InvalidArgs, "%s is not the name of a plugin; expected at most 40 letters, digits, "+
			"hyphens and underscores, a letter first, without \"__\"", host.Printable(opts.Name)).
			WithSteps(host.OperatorStep(host.OpHelp, "plugin new"))
	}
	if manifest.Reserved(opts.Name) {
		return host.Errorf(host.AlreadyExists, "a plugin cannot be named %q: the name is reserved by Parley", opts.Name).
			WithSteps(host.OperatorStep(host.OpHelp, "plugin new"))
	}
	if !slices.Contains(languageNames, opts.Lang) {
		given := command.Either(opts.Lang == "", "no --lang was given",
			"--lang "+manifest.CleanLine(opts.Lang)+" is not a language that plugin new knows")
		return host.Errorf(host.InvalidArgs, "%s; expected go, rust, c or js. Other languages implement the ABI "+
			"(sdk/abi.md) and are packed", given).
			WithSteps(host.OperatorStep(host.OpPluginNew, opts.Name, "--lang", "go"))
	}
	if err := os.Mkdir(opts.Name, 0o755); errors.Is(err, fs.ErrExist) {
		return host.Errorf(host.AlreadyExists, "%s exists already; nothing was written", opts.Name).
			WithSteps(host.OperatorStep(host.OpPluginBuild, opts.Name))
	} else if err != nil {
		return host.Errorf(host.Unavailable, "cannot make the folder: %v", err)
	}
	data := &newPluginData{Dir: opts.Name, Name: opts.Name, Lang: opts.Lang}
	write := func(name string, content []byte) error {
		data.Files = append(data.Files, name)
		return os.WriteFile(filepath.Join(opts.Name, name), content, 0o644)
	}
	files, err := fs.ReadDir(sdk.Templates, "templates/"+opts.Lang)
	for _, f := range files {
		text, failed := fs.ReadFile(sdk.Templates, path.Join("templates", opts.Lang, f.Name()))
		name := strings.TrimSuffix(f.Name(), ".txt") // which keeps Go from compiling it in the SDK
		err = errors.Join(err, failed, write(name, bytes.ReplaceAll(text, []byte("NAME"), []byte(opts.Name))))
	}
	if l := languages[slices.Index(languageNames, opts.Lang)]; l.sdk != "" {
		err = errors.Join(err, write(l.sdk, l.text), write(sourceManifest, described))
	} else {
		data.Files = append(data.Files, "go.mod", goSDKFolder)
		err = errors.Join(err, writeGoModule(opts.Name))
	}
	if err != nil {
		return err
	}
	next := []string{"parley plugin build " + data.Dir}
	return app.PrintNext(data, next, command.Text("Made %s: %s\n", data.Dir, strings.Join(data.Files, ", ")))
}

// pluginNewOptions say what plugin to begin.
type pluginNewOptions struct {
	Name string `word:""` // of the plugin, and of the folder that is made in the current one
	Lang string `flag:"lang" usage:"go, rust, c, js"`
}

// languageNames are the languages in which a plugin can begin.
var languageNames = command.Map(languages, func(l language) string { return l.name })

// newPluginData is the folder that was made.
type newPluginData struct {
	Dir   string   `json:"dir"`
	Name  string   `json:"name"`
	Lang  string   `json:"lang"`
	Files []string `json:"files"` // in Dir
}
