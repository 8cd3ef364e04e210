package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
	"github.com/parley-tools/parley/sdk"
)

const (
	modulePath = "github.com/parley-tools/parley"
	// goVersion is the toolchain whose output is compared by digest.
	goVersion = "go1.26.8"
)

type buildFlags struct {
	out      string
	manifest string
}

func newPluginBuild(app *App) *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Build a plugin from Go source: wasm and manifest in one file",
		Long: "Generates the manifest from the code, compiles with the flags that make the result reproducible, and checks it.\n" +
			"Where the folder has no go.mod, one is written that finds the SDK in this binary: no network is needed.",
		Example: "parley plugin build ./hello",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			switch {
			case len(args) == 1:
				dir = args[0]
			case len(args) > 1:
				return host.Errorf(host.InvalidArgs, "parley plugin build takes one DIR")
			}
			return app.build(cmd.Context(), dir, f)
		},
	}
	cmd.Flags().StringVar(&f.out, "out", "", "default DIR/plugin.wasm; .gz compresses")
	cmd.Flags().StringVar(&f.manifest, "manifest", "", "also write the manifest alone to this file")
	return cmd
}

// built is what build answers.
type built struct {
	Out    string   `json:"out"`
	Bytes  int      `json:"bytes"`
	Name   string   `json:"name"`
	Tools  int      `json:"tools"`
	SHA256 string   `json:"sha256"` // of the wasm, manifest included, before compression
	Lint   []string `json:"lint,omitempty"`
}

func (a *App) build(ctx context.Context, dir string, f *buildFlags) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return host.Errorf(host.InvalidArgs, "%s is not a folder; expected one with a Go package", manifest.CleanLine(dir)).
			WithNext("parley plugin build ./hello")
	}
	if sources, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(sources) == 0 {
		return host.Errorf(host.InvalidArgs, "%s holds no Go source", manifest.CleanLine(dir)).
			WithNext("write main.go as sdk/go shows, or build another language yourself and run parley plugin install FILE.wasm")
	}
	if _, err := exec.LookPath("go"); err != nil {
		return host.Errorf(host.Unavailable, "building a Go plugin needs the go command, which is not in PATH").WithNext("parley doctor")
	}
	module, err := a.module(ctx, dir)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "parley-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	described, err := goTool(ctx, dir, nil, append([]string{"run"}, append(module, ".")...)...)
	if err != nil {
		return host.AsError(err).WithNext("mend what the compiler names; the plugin is also built natively, to read its manifest")
	}
	m, err := manifest.Parse(described, parley.Version)
	if err != nil {
		return &host.Error{Code: host.InvalidPlugin, Message: err.Error(), Cause: err, Next: []string{"mend the code that the pointer names, then build again"}}
	}
	compiled := filepath.Join(work, "plugin.wasm")
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", compiled}, module...)
	if _, err := goTool(ctx, dir, []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"}, append(args, ".")...); err != nil {
		return err
	}
	code, err := os.ReadFile(compiled)
	if err != nil {
		return err
	}
	whole, err := manifest.WriteSection(code, bytes.TrimSpace(described))
	if err != nil {
		return err
	}
	if err := wasm.Check(whole, m); err != nil {
		return err
	}
	if f.manifest != "" {
		if err := command.WriteFile(f.manifest, append(bytes.TrimSpace(described), '\n')); err != nil {
			return host.Errorf(host.Unavailable, "cannot write %s: %v", manifest.CleanLine(f.manifest), err)
		}
	}
	return a.writeBuilt(dir, f.out, whole, m)
}

func (a *App) writeBuilt(dir, out string, whole []byte, m *manifest.Manifest) error {
	if out == "" {
		out = filepath.Join(dir, "plugin.wasm")
	}
	content := whole
	if strings.HasSuffix(out, ".gz") {
		if old, err := os.ReadFile(out); err == nil && sameUnzipped(old, whole) {
			content = old // the same wasm: gzip's own bytes must not change a file that is under version control
		} else if content, err = zipped(whole); err != nil {
			return err
		}
	}
	if err := command.WriteFile(out, content); err != nil {
		return host.Errorf(host.Unavailable, "cannot write %s: %v", manifest.CleanLine(out), err)
	}
	sum := sha256.Sum256(whole)
	data := built{Out: out, Bytes: len(content), Name: m.Name, Tools: len(m.Tools), SHA256: hex.EncodeToString(sum[:]), Lint: lintOf(m)}
	next := []string{"parley plugin install " + shellQuote(out), "parley " + m.Name + " --list --load " + shellQuote(out)}
	return a.answer(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "Built %s: %s, %s, %d bytes\n", out, m.Name, plural(len(m.Tools), "tool"), len(content))
		for _, l := range data.Lint {
			fmt.Fprintln(w, "  lint: "+l)
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

// lintOf returns what breaks the rules of manifest/RULES.md, one line each.
func lintOf(m *manifest.Manifest) []string {
	var lines []string
	for _, f := range lint.Check(m, lint.Neighbors{}) {
		lines = append(lines, f.String())
	}
	return lines
}

func zipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

func sameUnzipped(packed, whole []byte) bool {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(len(whole))+1))
	return err == nil && bytes.Equal(data, whole)
}

// module makes sure that the SDK can be imported and returns the flags that the go command needs for it. A folder
// without a module gets a go.mod; one whose module does not know the SDK is built with a copy that does.
func (a *App) module(ctx context.Context, dir string) ([]string, error) {
	out, err := goTool(ctx, dir, nil, "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	goMod := strings.TrimSpace(string(out))
	if goMod == "" || goMod == os.DevNull {
		root, err := a.extractSDK()
		if err != nil {
			return nil, err
		}
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("module %s\n\ngo 1.26\n\nrequire %s v%s\n\nreplace %s => %s\n", moduleName(filepath.Base(absolute)), modulePath, parley.Version, modulePath, root)
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
			return nil, host.Errorf(host.Unavailable, "cannot write go.mod: %v", err)
		}
		a.notice("wrote go.mod, which finds the SDK in " + root)
		return nil, nil
	}
	if _, err := goTool(ctx, dir, nil, "list", "-find", modulePath+"/sdk/go"); err == nil {
		return nil, nil
	}
	root, err := a.extractSDK()
	if err != nil {
		return nil, err
	}
	// A module file beside the author's own: nothing of his is changed.
	copied := filepath.Join(root, "modfiles", hashName(goMod)+".mod")
	data, err := os.ReadFile(goMod)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(copied, data, 0o644); err != nil {
		return nil, err
	}
	if sum, err := os.ReadFile(strings.TrimSuffix(goMod, ".mod") + ".sum"); err == nil {
		if err := os.WriteFile(strings.TrimSuffix(copied, ".mod")+".sum", sum, 0o644); err != nil {
			return nil, err
		}
	}
	if _, err := goTool(ctx, dir, nil, "mod", "edit", "-require="+modulePath+"@v"+parley.Version, "-replace="+modulePath+"="+root, copied); err != nil {
		return nil, err
	}
	a.debugf("the module does not know the SDK; building with %s", copied)
	return []string{"-modfile=" + copied}, nil
}

func moduleName(folder string) string {
	odd := regexp.MustCompile(`[^a-z0-9._-]+`)
	name := strings.Trim(odd.ReplaceAllString(strings.ToLower(folder), "-"), "-.")
	if name == "" {
		return "plugin"
	}
	return name
}

func hashName(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// extractSDK lays the SDK that is part of this binary into the data folder, as a module of its own.
func (a *App) extractSDK() (string, error) {
	files := map[string][]byte{"go.mod": []byte("module " + modulePath + "\n\ngo 1.26\n")}
	hash := sha256.New()
	err := fs.WalkDir(sdk.Go, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(sdk.Go, path)
		files["sdk/"+path] = data
		fmt.Fprintf(hash, "%s %d\n%s", path, len(data), data)
		return err
	})
	if err != nil {
		return "", err
	}
	parent := filepath.Join(a.deps.Dirs().Data, "sdk")
	root := filepath.Join(parent, "go-"+parley.Version)
	sum := hex.EncodeToString(hash.Sum(nil))
	const mark = ".sha256" // of a copy that is whole
	if have, err := os.ReadFile(filepath.Join(root, mark)); err == nil && string(have) == sum {
		return root, nil
	}
	files[mark] = []byte(sum)
	if err := replaceFolder(parent, root, files); err != nil {
		return "", host.Errorf(host.Unavailable, "cannot write the SDK into %s: %v", root, err)
	}
	return root, nil
}

// replaceFolder writes files into a new folder beside root and puts it in root's place.
func replaceFolder(parent, root string, files map[string][]byte) error {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, "sdk")
	for name, data := range files {
		path := filepath.Join(fresh, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	if err := os.Rename(root, filepath.Join(temp, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, root)
}

// goTool runs the go command in a folder, with the environment that makes its output reproducible.
func goTool(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWASM=", "GOWORK=off", "GOTOOLCHAIN="+goVersion)
	if local, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output(); err == nil && strings.TrimSpace(string(local)) == goVersion {
		cmd.Env = append(cmd.Env, "GOTOOLCHAIN=local")
	}
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		if len(said) > 4000 {
			said = said[:4000] + "…"
		}
		return nil, &host.Error{Code: host.InvalidPlugin, Message: manifest.Clean(fmt.Sprintf("go %s: %v\n%s", args[0], err, said)), Cause: err}
	}
	return stdout.Bytes(), nil
}
