package plugins

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
	"github.com/parley-tools/parley/sdk"
)

var pluginBuildCommand = &command.Command[*pluginBuildOptions]{
	Use: "build [DIR]", Run: runPluginBuild,
	Short: "Build a plugin from source: wasm and manifest in one file",
	Long: "Compiles the Go, Rust, C or C++ source of DIR with the flags that make the result reproducible, puts the\n" +
		"manifest into it, and prints the report that an installation prints. The manifest of Go comes from the code,\n" +
		"that of other languages from manifest.json. A folder with Go and no go.mod gets one, with the SDK from this\n" +
		"binary: no network is needed.",
	Example: "parley plugin build ./hello",
}

func runPluginBuild(ctx context.Context, app *command.App, opts *pluginBuildOptions) error {
	data, err := buildPlugin(ctx, app, *opts)
	if err != nil {
		return err
	}
	again := "parley plugin build" + strings.TrimSuffix(" "+command.ShellQuote(opts.Dir), " ''")
	again += command.When(opts.Names, " --names")
	return printBuilt(app, data, "Built", again)
}

// printBuilt prints what was built or packed. again is the command to repeat it.
func printBuilt(a *command.App, data *buildPluginData, did, again string) error {
	out := command.ShellQuote(data.Out)
	refused := len(data.Admission.Errors()) > 0
	next := command.Either(refused, []string{again},
		[]string{"parley plugin install " + out, "parley " + data.Name + " --list --load " + out})
	return a.PrintNext(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s: %s, %s, %d bytes\n", did, data.Out, data.Name, manifest.Plural(data.Tools, "tool"), data.Bytes)
		command.WriteAsks(w, data.Admission.Rights, nil, nil)
		command.WriteAdmission(w, data.Admission)
		command.PrintIf(w, refused,
			"  An installation refuses it because of these errors. Change the texts, then repeat this.\n")
	})
}

const (
	modulePath = "github.com/parley-tools/parley"
	// goVersion is the toolchain whose output is reproducible, because digests are compared with it.
	goVersion = "go1.26.8"
)

// pluginBuildOptions say what to build and where to write it.
type pluginBuildOptions struct {
	// Dir is the folder of the source. "" means the current one.
	Dir      string `word:""`
	Manifest string `flag:"manifest" usage:"also write the manifest alone to this file"`
	Names    bool   `flag:"names" usage:"keep the names of functions, which show where a plugin crashes"`
	Out      string `flag:"out" usage:"default DIR/plugin.wasm; .gz compresses"`
}

// buildPluginData is the plugin that was built.
type buildPluginData struct {
	Out    string   `json:"out"`
	Bytes  int      `json:"bytes"` // size of the file
	Name   string   `json:"name"`
	Tools  int      `json:"tools"`
	SHA256 string   `json:"sha256"` // of the wasm with its manifest, before compression
	Lint   []string `json:"lint,omitempty"`
	// Admission is the report that an installation would print.
	Admission *admit.Report `json:"admission,omitempty"`
}

// buildPlugin builds a plugin from the source in a folder, with the compiler of its language, reproducibly. If the
// manifest has assets, it packs the files in the folder assets, next to the source, into the plugin. The error is
// unavailable without the compiler, and invalid_plugin if the source does not compile or the plugin is not valid.
func buildPlugin(ctx context.Context, app *command.App, o pluginBuildOptions) (*buildPluginData, error) {
	dir := cmp.Or(o.Dir, ".")
	l, sources, err := findLanguage(dir)
	if err != nil {
		return nil, err
	}
	code, described, err := l.build(ctx, app, source{dir, sources, o.Names})
	if err != nil {
		return nil, err
	}
	out := cmp.Or(o.Out, filepath.Join(dir, "plugin.wasm"))
	if code, err = embedFiles(code, described, dir); err != nil {
		return nil, err
	}
	c, err := store.Pack(out, code, described, dir, parley.Version)
	if err != nil {
		return nil, err
	}
	if o.Manifest != "" {
		if err := command.WriteFile(o.Manifest, append(described, '\n'), 0o644); err != nil {
			return nil, host.Errorf(host.Unavailable, "cannot write %s: %v", manifest.CleanLine(o.Manifest), err)
		}
	}
	return writePlugin(ctx, app, c, out)
}

// writePlugin writes a plugin that was built or packed, and returns the report of its admission. The operator is its
// author, so problems that would refuse a stranger's plugin are only reported.
func writePlugin(ctx context.Context, app *command.App, c *store.Candidate, out string) (*buildPluginData, error) {
	size, err := writeBuilt(out, c.Wasm)
	if err != nil {
		return nil, err
	}
	report, err := app.Parley().Admission().Admit(ctx, c, admit.Signer{}, nil)
	if err != nil {
		return nil, err
	}
	return &buildPluginData{
		Out: out, Bytes: size, Name: c.Manifest.Name, Tools: len(c.Manifest.Tools),
		SHA256: fmt.Sprintf("%x", sha256.Sum256(c.Wasm)), Lint: command.Strings(report.Findings), Admission: report,
	}, nil
}

// buildGo returns the wasm of a Go package, and the manifest that its code describes. It writes a go.mod if the
// folder is not in a module.
func buildGo(ctx context.Context, app *command.App, s source) (code, described []byte, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, nil, host.Errorf(host.Unavailable, "building a Go plugin requires the go command, which is not in PATH").
			WithSteps(step.Operator(step.OpDoctor))
	}
	module, err := moduleFlags(ctx, app, s.dir)
	if err != nil {
		return nil, nil, err
	}
	described, err = goTool(ctx, s.dir, nil, append([]string{"run"}, append(module, ".")...)...)
	if err != nil {
		e := host.AsError(err)
		if _, own, ok := strings.Cut(e.Message, "\nError: "); ok { // it was compiled, and refuses what it registers
			e.Message = strings.TrimSuffix(own, "\nexit status 1")
			e.Next = []string{"correct the code, then build again"}
		}
		return nil, nil, e
	}
	if at := bytes.LastIndex(described, []byte("\n{\n")); at >= 0 { // what the plugin printed before the manifest
		described = described[at:]
	}
	if described = bytes.TrimSpace(described); len(described) == 0 {
		return nil, nil, host.Errorf(host.InvalidPlugin, "the program prints no manifest; expected func main() "+
			"{ sdk.Main() }").WithNext("correct the code, then build again")
	}
	if _, err := manifest.Parse(described, parley.Version); err != nil {
		return nil, nil, &host.Error{
			Code: host.InvalidPlugin, Message: err.Error(), Cause: err,
			Next: []string{"fix the code that the pointer names, then build again"},
		}
	}
	link := command.Either(s.names, "-ldflags=-w", "-ldflags=-s -w")
	code, err = compiled(func(out string) error {
		args := []string{"build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", link, "-o", out}
		args = append(append(args, module...), ".")
		_, err := goTool(ctx, s.dir, []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"}, args...)
		return err
	})
	return code, described, err
}

// assetsFolder is the folder, next to the source or the module, with the files of a plugin with assets.
const assetsFolder = "assets"

// embedFiles puts the scripts and the assets that a manifest declares into a module. They come from a folder: the
// files NAME.js, and those in assets. Parts that are not in the folder but already in the module stay. An invalid
// manifest declares nothing: [store.Pack] says what is wrong with it.
func embedFiles(code, described []byte, folder string) ([]byte, error) {
	m, err := manifest.Parse(described, parley.Version)
	if err != nil {
		return code, nil
	}
	for _, s := range m.Scripts {
		text, err := os.ReadFile(filepath.Join(folder, s.Name+".js"))
		if _, missing := sections.ReadScript(code, &s); err != nil && missing == nil {
			continue
		}
		if err != nil {
			return nil, host.Errorf(host.InvalidPlugin, "the manifest has the script %s: %s", s.Name,
				manifest.CleanLine(err.Error()))
		}
		if code, err = sections.WriteScript(code, s.Name, text); err != nil {
			return nil, err
		}
	}
	if m.Assets == nil {
		return code, nil
	}
	folder = filepath.Join(folder, assetsFolder)
	_, err = os.Stat(folder)
	if inside, _ := sections.ReadAssets(code); err != nil && inside != nil {
		return code, nil
	}
	packed, err := store.PackAssets(os.DirFS(folder))
	if err != nil {
		return nil, &host.Error{Code: host.InvalidPlugin, Cause: err,
			Message: fmt.Sprintf("the manifest has assets, and the folder %s cannot be packed: %s",
				manifest.CleanLine(folder), manifest.CleanLine(host.WithoutPath(err).Error())),
			Next: []string{"put the files into that folder, or remove Assets from the plugin, then build again"}}
	}
	return sections.WriteAssets(code, packed)
}

// writeBuilt writes a plugin and returns the size of the file.
func writeBuilt(out string, whole []byte) (int, error) {
	content := whole
	if strings.HasSuffix(out, ".gz") {
		old, err := store.ReadModule(out)
		if err == nil && bytes.Equal(old, whole) { // a file must not change only because gzip's own bytes would
			content, err = os.ReadFile(out)
		} else {
			var b bytes.Buffer
			w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // it fails only for an invalid level
			_, err = w.Write(whole)
			err = errors.Join(err, w.Close())
			content = b.Bytes()
		}
		if err != nil {
			return 0, err
		}
	}
	if err := command.WriteFile(out, content, 0o644); err != nil {
		return 0, host.Errorf(host.Unavailable, "cannot write %s: %v", manifest.CleanLine(out), err)
	}
	return len(content), nil
}

// goSDKFolder is the folder next to a go.mod that plugin build or plugin new wrote. It contains the SDK, so that the
// plugin can be built wherever it is moved. The go command ignores it in patterns, because its name begins with a
// dot.
const goSDKFolder = ".parley"

// moduleFlags makes the SDK importable and returns the flags that the go command needs for that. It writes a go.mod
// if the folder is not in a module. If the module does not require the SDK, it uses a copy of the module's go.mod
// that does.
func moduleFlags(ctx context.Context, app *command.App, dir string) ([]string, error) {
	out, err := goTool(ctx, dir, nil, "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	goMod := strings.TrimSpace(string(out))
	if goMod == "" || goMod == os.DevNull {
		if err := writeGoModule(dir); err != nil {
			return nil, err
		}
		app.Notice("wrote go.mod, which finds the SDK in " + filepath.Join(dir, goSDKFolder))
		return nil, nil
	}
	if text, err := os.ReadFile(goMod); err == nil && strings.Contains(string(text), "=> ./"+goSDKFolder) {
		return nil, extractSDK(filepath.Join(filepath.Dir(goMod), goSDKFolder)) // it may be from an older version, or missing
	}
	if _, err := goTool(ctx, dir, nil, "list", "-find", modulePath+"/sdk/go"); err == nil {
		return nil, nil
	}
	root := filepath.Join(app.Dirs().Data, "sdk", "go-"+parley.Version)
	if err := extractSDK(root); err != nil {
		return nil, err
	}
	// The author's own go.mod stays unchanged.
	copied := filepath.Join(root, "modfiles", fmt.Sprintf("%.8x.mod", sha256.Sum256([]byte(goMod))))
	data, err := os.ReadFile(goMod)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(copied), 0o755), os.WriteFile(copied, data, 0o644))
	}
	if sums, missing := os.ReadFile(strings.TrimSuffix(goMod, ".mod") + ".sum"); missing == nil && err == nil {
		err = os.WriteFile(strings.TrimSuffix(copied, ".mod")+".sum", sums, 0o644)
	}
	if err != nil {
		return nil, err
	}
	require, replace := "-require="+modulePath+"@v"+parley.Version, "-replace="+modulePath+"="+root
	if _, err := goTool(ctx, dir, nil, "mod", "edit", require, replace, copied); err != nil {
		return nil, err
	}
	app.Debugf("the module does not require the SDK; building with %s", copied)
	return []string{"-modfile=" + copied}, nil
}

// writeGoModule writes a go.mod and the SDK into a folder. They contain no path of this machine.
func writeGoModule(dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := extractSDK(filepath.Join(dir, goSDKFolder)); err != nil {
		return err
	}
	text := fmt.Sprintf("module %s\n\ngo 1.26\n\nrequire %s v%s\n\nreplace %s => ./%s\n",
		moduleName(filepath.Base(absolute)), modulePath, parley.Version, modulePath, goSDKFolder)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
		return host.Errorf(host.Unavailable, "cannot write go.mod: %v", err)
	}
	return nil
}

func moduleName(folder string) string {
	odd := regexp.MustCompile(`[^a-z0-9._-]+`)
	return cmp.Or(strings.Trim(odd.ReplaceAllString(strings.ToLower(folder), "-"), "-."), "plugin")
}

// extractSDK writes the SDK for Go, which is embedded in this binary, to a folder as a module.
func extractSDK(root string) error {
	hash := sha256.New()
	err := fs.WalkDir(sdk.Go, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(sdk.Go, path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(data), data)
		return err
	})
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", hash.Sum(nil))
	const mark = ".sha256" // marks a complete copy
	if have, err := os.ReadFile(filepath.Join(root, mark)); err == nil && string(have) == sum {
		return nil
	}
	err = replaceFolder(root, func(fresh string) error {
		module := "module " + modulePath + "\n\ngo 1.26\n"
		return errors.Join(os.CopyFS(filepath.Join(fresh, "sdk"), sdk.Go),
			os.WriteFile(filepath.Join(fresh, "go.mod"), []byte(module), 0o644),
			os.WriteFile(filepath.Join(fresh, mark), []byte(sum), 0o644))
	})
	if err != nil {
		return host.Errorf(host.Unavailable, "cannot write the SDK into %s: %v", root, err)
	}
	return nil
}

// replaceFolder lets fill write a new folder next to root, and then replaces root by it.
func replaceFolder(root string, fill func(fresh string) error) error {
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(root), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, "sdk")
	if err := fill(fresh); err != nil {
		return err
	}
	if err := os.Rename(root, filepath.Join(temp, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, root)
}

// goTool runs the go command in a folder, with the environment that makes its output reproducible.
func goTool(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	own := []string{"GOFLAGS=", "GOWASM=", "GOWORK=off", "GOTOOLCHAIN=" + goVersion}
	local, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err == nil && strings.TrimSpace(string(local)) == goVersion {
		own = append(own, "GOTOOLCHAIN=local")
	}
	return runCompiler(ctx, dir, append(own, env...), "go", args...)
}

var pluginPackCommand = &command.Command[*pluginPackOptions]{
	Use: "pack FILE", Run: runPluginPack,
	Short: "Put a manifest into a wasm module, of any language",
	Long: "Writes the manifest into the custom section parley.manifest of the module, in place of the one that it\n" +
		"has, and the scripts (NAME.js) and assets (the folder assets) that it declares, from the folder of FILE.\n" +
		"Prints the report that an installation prints. A module or a manifest that no installation accepts is\n" +
		"refused, and nothing is written.",
	Example: "parley plugin pack hello.wasm --manifest hello.manifest.json",
}

// runPluginPack puts a manifest, and the scripts and assets that it declares, into a module, after the checks of an
// installation. If it fails, nothing is written.
func runPluginPack(ctx context.Context, app *command.App, opts *pluginPackOptions) error {
	code, err := store.ReadModule(opts.Path)
	if err != nil {
		return err
	}
	from := cmp.Or(opts.Manifest, store.ManifestBeside(opts.Path))
	if from == "" {
		return host.Errorf(host.InvalidArgs, "there is no manifest beside %s; expected --manifest FILE, a JSON file "+
			"as parley plugin schema describes it", manifest.CleanLine(opts.Path)).
			WithSteps(step.Operator(step.OpPluginSchema))
	}
	const limit = 4 << 20
	described, err := command.ReadValue(ctx, from, limit)
	if err != nil {
		return host.Errorf(host.InvalidArgs, "cannot read the manifest: %s", manifest.CleanLine(err.Error()))
	}
	if code, err = embedFiles(code, described, filepath.Dir(opts.Path)); err != nil {
		return err
	}
	c, err := store.Pack(opts.Path, code, described, from, parley.Version)
	if err != nil {
		return err
	}
	data, err := writePlugin(ctx, app, c, cmp.Or(opts.Out, opts.Path))
	if err != nil {
		return err
	}
	from = command.When(opts.Manifest != "", " --manifest "+command.ShellQuote(opts.Manifest))
	return printBuilt(app, data, "Packed", "parley plugin pack "+command.ShellQuote(opts.Path)+from)
}

var pluginSchemaCommand = &command.Command[string]{
	Use: "schema", Run: runPluginSchema,
	Short:   "Print the JSON Schema of manifests",
	Long:    "The schema says what each field means, its default and its bounds. With --json it is in an envelope.",
	Example: "parley plugin schema > manifest.schema.json",
}

func runPluginSchema(_ context.Context, app *command.App, _ string) error {
	return app.Print(json.RawMessage(manifest.Schema()), []string{"parley plugin pack FILE --manifest FILE"}, nil)
}

// pluginPackOptions say which module and manifest to join.
type pluginPackOptions struct {
	Path     string `word:""` // the wasm file
	Manifest string `flag:"manifest" usage:"JSON file; default FILE without .wasm, with .manifest.json"`
	Out      string `flag:"out" usage:"default FILE itself; .gz compresses"`
}

var pluginNewCommand = &command.Command[*pluginNewOptions]{
	Use: "new NAME", Run: runPluginNew,
	Short: "Begin a plugin: a folder with source, manifest and SDK",
	Long: "Makes the folder NAME with a small plugin and the SDK of the language. It builds, checks and installs as\n" +
		"it is, without a network.",
	Example: "parley plugin new hello --lang c\nparley plugin build hello",
	Options: map[string]command.Completer{"lang": command.OneOf(languageNames...)},
}

// runPluginNew creates a folder with the source of a small plugin and the SDK. The plugin builds, passes the checks
// and installs without changes.
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
	if err := checkName(opts.Name, step.OpPluginNew, "--lang", cmp.Or(opts.Lang, "go")); err != nil {
		return err
	}
	if !slices.Contains(languageNames, opts.Lang) {
		meant := cmp.Or(map[string]string{"ts": "js", "typescript": "js", "javascript": "js", "rs": "rust", "c++": "c",
			"cpp": "c"}[strings.ToLower(opts.Lang)], "go")
		given := command.Either(opts.Lang == "", "no --lang was given",
			"--lang "+manifest.CleanLine(opts.Lang)+" is not a language that plugin new knows")
		return host.Errorf(host.InvalidArgs, "%s; expected go, rust, c or js. Other languages implement the ABI "+
			"(sdk/abi.md) and are packed", given).WithSteps(step.Operator(step.OpPluginNew, opts.Name, "--lang", meant))
	}
	if err := os.Mkdir(opts.Name, 0o755); errors.Is(err, fs.ErrExist) {
		return host.Errorf(host.AlreadyExists, "%s exists already; nothing was written", opts.Name).
			WithSteps(step.Operator(step.OpPluginBuild, opts.Name))
	} else if err != nil {
		return host.Errorf(host.Unavailable, "cannot make the folder: %v", err)
	}
	data := struct {
		Dir   string   `json:"dir"`
		Name  string   `json:"name"`
		Lang  string   `json:"lang"`
		Files []string `json:"files"` // names within Dir
	}{Dir: opts.Name, Name: opts.Name, Lang: opts.Lang}
	write := func(name string, content []byte) error {
		data.Files = append(data.Files, name)
		return os.WriteFile(filepath.Join(opts.Name, name), content, 0o644)
	}
	files, err := fs.ReadDir(sdk.Templates, "templates/"+opts.Lang)
	for _, f := range files {
		text, failed := fs.ReadFile(sdk.Templates, path.Join("templates", opts.Lang, f.Name()))
		name := strings.TrimSuffix(f.Name(), ".txt") // the suffix keeps Go from compiling the file in the SDK
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

// pluginNewOptions say what plugin to create.
type pluginNewOptions struct {
	Name string `word:""` // the name of the plugin, and of its folder in the current one
	Lang string `flag:"lang" usage:"go, rust, c, js"`
}

// languageNames are the languages of the templates for new plugins.
var languageNames = command.Map(languages, func(l language) string { return l.name })
