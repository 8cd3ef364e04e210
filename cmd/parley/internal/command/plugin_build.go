package command

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

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/sdk"
)

const (
	modulePath = "github.com/parley-tools/parley"
	// goVersion is the toolchain whose output is reproducible: digests are compared with it.
	goVersion = "go1.26.8"
)

// BuildOptions say what to build and where to write it.
type BuildOptions struct {
	// Dir is the folder of the Go package. "" means the current one.
	Dir string
	// Out is the file to write, compressed if its name ends in .gz. "" means plugin.wasm in Dir.
	Out string
	// Manifest is a further file for the manifest alone. "" means none.
	Manifest string
}

// BuildPluginData is the plugin that was built.
type BuildPluginData struct {
	Out    string   `json:"out"`
	Bytes  int      `json:"bytes"` // size of the file
	Name   string   `json:"name"`
	Tools  int      `json:"tools"`
	SHA256 string   `json:"sha256"` // of the wasm with its manifest, before compression
	Lint   []string `json:"lint,omitempty"`
	// Admission is the report that an installation will print.
	Admission *parley.Admission `json:"admission,omitempty"`
}

// BuildPlugin builds a plugin from Go source with the go command, reproducibly. A folder without a go.mod gets one. The
// error is unavailable without a go command, and invalid_plugin if the source does not compile or the plugin is not
// valid.
func BuildPlugin(ctx context.Context, d *Deps, o BuildOptions) (*BuildPluginData, error) {
	dir := o.Dir
	if dir == "" {
		dir = "."
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, host.Errorf(host.InvalidArgs, "%s is not a folder; expected one with a Go package",
			manifest.CleanLine(dir)).WithNext("parley plugin build ./hello")
	}
	if sources, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(sources) == 0 {
		return nil, host.Errorf(host.InvalidArgs, "%s has no Go source", manifest.CleanLine(dir)).WithNext(
			"write main.go as sdk/go shows, or build another language yourself and run parley plugin install FILE.wasm")
	}
	if _, err := exec.LookPath("go"); err != nil {
		return nil, host.Errorf(host.Unavailable, "building a Go plugin requires the go command, which is not in PATH").
			WithSteps(host.OperatorStep(host.OpDoctor))
	}
	module, err := d.moduleFlags(ctx, dir)
	if err != nil {
		return nil, err
	}
	whole, m, err := compile(ctx, dir, module, o.Manifest)
	if err != nil {
		return nil, err
	}
	out := o.Out
	if out == "" {
		out = filepath.Join(dir, "plugin.wasm")
	}
	size, err := writeBuilt(out, whole)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(whole)
	data := &BuildPluginData{
		Out: out, Bytes: size, Name: m.Name, Tools: len(m.Tools), SHA256: hex.EncodeToString(sum[:]),
	}
	c, err := wasm.ReadCandidateFile(out, parley.Version)
	if err != nil {
		return nil, err
	}
	// Its author is the operator: what would refuse the plugin of a stranger is only reported.
	if data.Admission, err = d.Parley().Admit(ctx, c, parley.Signer{}, nil); err != nil {
		return nil, err
	}
	for _, f := range data.Admission.Findings {
		data.Lint = append(data.Lint, f.String())
	}
	return data, nil
}

// compile returns the wasm with its manifest embedded. It writes the manifest to manifestFile, unless that is "".
func compile(
	ctx context.Context, dir string, module []string, manifestFile string,
) ([]byte, *manifest.Manifest, error) {
	described, err := goTool(ctx, dir, nil, append([]string{"run"}, append(module, ".")...)...)
	if err != nil {
		return nil, nil, host.AsError(err).
			WithNext("fix what the compiler names; the plugin is also built natively, to read its manifest")
	}
	described = bytes.TrimSpace(described)
	m, err := manifest.Parse(described, parley.Version)
	if err != nil {
		return nil, nil, &host.Error{
			Code: host.InvalidPlugin, Message: err.Error(), Cause: err,
			Next: []string{"fix the code that the pointer names, then build again"},
		}
	}
	work, err := os.MkdirTemp("", "parley-build-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(work)
	compiled := filepath.Join(work, "plugin.wasm")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w", "-o", compiled}
	args = append(append(args, module...), ".")
	if _, err := goTool(ctx, dir, []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"}, args...); err != nil {
		return nil, nil, err
	}
	code, err := os.ReadFile(compiled)
	if err != nil {
		return nil, nil, err
	}
	whole, err := manifest.WriteSection(code, described)
	if err != nil {
		return nil, nil, err
	}
	if err := wasm.Check(whole, m); err != nil {
		return nil, nil, err
	}
	if manifestFile != "" {
		if err := writeFile(manifestFile, append(described, '\n')); err != nil {
			return nil, nil, host.Errorf(host.Unavailable, "cannot write %s: %v", manifest.CleanLine(manifestFile), err)
		}
	}
	return whole, m, nil
}

// writeBuilt writes a plugin and returns the size of the file.
func writeBuilt(out string, whole []byte) (int, error) {
	content := whole
	if strings.HasSuffix(out, ".gz") {
		var err error
		if old, readErr := os.ReadFile(out); readErr == nil && sameUnzipped(old, whole) {
			content = old // a file under version control does not change if only gzip's own bytes would
		} else if content, err = zipped(whole); err != nil {
			return 0, err
		}
	}
	if err := writeFile(out, content); err != nil {
		return 0, host.Errorf(host.Unavailable, "cannot write %s: %v", manifest.CleanLine(out), err)
	}
	return len(content), nil
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

// moduleFlags makes the SDK importable and returns the flags that the go command needs for that. A folder outside a
// module gets a go.mod. If the module does not require the SDK, a copy of its go.mod that does is used.
func (d *Deps) moduleFlags(ctx context.Context, dir string) ([]string, error) {
	out, err := goTool(ctx, dir, nil, "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	goMod := strings.TrimSpace(string(out))
	if goMod == "" || goMod == os.DevNull {
		root, err := d.extractSDK()
		if err != nil {
			return nil, err
		}
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("module %s\n\ngo 1.26\n\nrequire %s v%s\n\nreplace %s => %s\n",
			moduleName(filepath.Base(absolute)), modulePath, parley.Version, modulePath, root)
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
			return nil, host.Errorf(host.Unavailable, "cannot write go.mod: %v", err)
		}
		d.Notice("wrote go.mod, which finds the SDK in " + root)
		return nil, nil
	}
	if _, err := goTool(ctx, dir, nil, "list", "-find", modulePath+"/sdk/go"); err == nil {
		return nil, nil
	}
	root, err := d.extractSDK()
	if err != nil {
		return nil, err
	}
	// The author's own go.mod stays as it is.
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
	require, replace := "-require="+modulePath+"@v"+parley.Version, "-replace="+modulePath+"="+root
	if _, err := goTool(ctx, dir, nil, "mod", "edit", require, replace, copied); err != nil {
		return nil, err
	}
	if d.Debugging {
		d.Debug("the module does not require the SDK; building with %s", copied)
	}
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

// extractSDK writes the SDK, which is embedded in this binary, to the data folder as a module, and returns its folder.
func (d *Deps) extractSDK() (string, error) {
	files := map[string][]byte{"go.mod": []byte("module " + modulePath + "\n\ngo 1.26\n")}
	hash := sha256.New()
	err := fs.WalkDir(sdk.Go, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
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
	parent := filepath.Join(d.Dirs().Data, "sdk")
	root := filepath.Join(parent, "go-"+parley.Version)
	sum := hex.EncodeToString(hash.Sum(nil))
	const mark = ".sha256" // the file that a complete copy has
	if have, err := os.ReadFile(filepath.Join(root, mark)); err == nil && string(have) == sum {
		return root, nil
	}
	files[mark] = []byte(sum)
	if err := replaceFolder(parent, root, files); err != nil {
		return "", host.Errorf(host.Unavailable, "cannot write the SDK into %s: %v", root, err)
	}
	return root, nil
}

// replaceFolder writes files to a new folder, which then replaces root. Both are in parent.
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
	local, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err == nil && strings.TrimSpace(string(local)) == goVersion {
		cmd.Env = append(cmd.Env, "GOTOOLCHAIN=local")
	}
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		output := strings.TrimSpace(stderr.String())
		if len(output) > 4000 {
			output = output[:4000] + "…"
		}
		return nil, &host.Error{
			Code: host.InvalidPlugin, Message: manifest.Clean(fmt.Sprintf("go %s: %v\n%s", args[0], err, output)), Cause: err,
		}
	}
	return stdout.Bytes(), nil
}
