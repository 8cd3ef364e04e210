package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/sections"
	"github.com/parley-tools/parley/sdk"
)

// sourceManifest is the file next to the source that contains the manifest, except for Go.
const sourceManifest = "manifest.json"

// language is how a plugin in one language is built.
type language struct {
	name       string
	extensions []string
	sdk        string // file name of the SDK, next to the source
	text       []byte // content of that file
	// build compiles a folder and returns the module and the manifest.
	build func(ctx context.Context, d *command.App, s source) (code, described []byte, err error)
}

// source is the source of a plugin to build.
type source struct {
	dir   string
	files []string // file names within dir
	names bool     // keep the names of functions
}

// languages are the languages of plugin build. A folder with Go and C is a Go package, and one with C and JavaScript
// is C with scripts for pages.
var languages = []language{
	{"go", []string{".go"}, "", nil, buildGo},
	{"rust", []string{".rs"}, "parley.rs", sdk.Rust, withManifest(compileRust)},
	{"c", []string{".c", ".cc", ".cpp", ".cxx"}, "parley.h", sdk.C, withManifest(compileC)},
	{"js", []string{".js", ".mjs", ".ts", ".mts"}, "parley.d.ts", sdk.JS, withManifest(bundleScript)},
}

// findLanguage returns the language of the source in a folder, and its files.
func findLanguage(dir string) (language, []string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return language{}, nil, host.Errorf(host.InvalidArgs, "%s is not a folder that can be read; expected one with the "+
			"source of a plugin", manifest.CleanLine(dir)).WithSteps(step.Operator(step.OpHelp, "plugin new"))
	}
	for _, l := range languages {
		var sources []string
		for _, e := range entries {
			if !e.IsDir() && !strings.HasSuffix(e.Name(), ".d.ts") && slices.Contains(l.extensions, filepath.Ext(e.Name())) {
				sources = append(sources, e.Name())
			}
		}
		if len(sources) > 0 {
			return l, sources, nil
		}
	}
	message := "%s has no source that plugin build knows; expected files *.go, *.rs, *.c, *.cpp, *.js or *.ts. A " +
		"module of another language is packed with its manifest"
	if _, err := os.Stat(filepath.Join(dir, "Cargo.toml")); err == nil {
		message = "%s is a package of Cargo, which plugin build does not run. Build it with cargo build --release --target " +
			"wasm32-wasip1, then pack the module with its manifest"
	}
	return language{}, nil, host.Errorf(host.InvalidArgs, message, manifest.CleanLine(dir)).
		WithSteps(step.Operator(step.OpHelp, "plugin pack"), step.Operator(step.OpHelp, "plugin new"))
}

// compiler compiles source files to out, as a reactor or a command, depending on the kind of the manifest.
type compiler func(ctx context.Context, s source, kind, out string) error

// withManifest returns the build function of a language whose manifest is a file next to the source.
func withManifest(compile compiler) func(context.Context, *command.App, source) ([]byte, []byte, error) {
	return func(ctx context.Context, _ *command.App, s source) (code, described []byte, err error) {
		path := filepath.Join(s.dir, sourceManifest)
		const limit = 4 << 20
		described, err = command.ReadValue(ctx, path, limit)
		if err != nil {
			return nil, nil, host.Errorf(host.InvalidArgs, "cannot read the manifest of the plugin: %s; expected it in %s",
				manifest.CleanLine(err.Error()), manifest.CleanLine(path)).WithSteps(step.Operator(step.OpPluginSchema))
		}
		m, err := manifest.Parse(described, parley.Version)
		if err != nil {
			return nil, nil, &host.Error{
				Code: host.InvalidPlugin, Message: manifest.CleanLine(path) + ": " + err.Error(), Cause: err,
				Steps: []step.Step{step.Operator(step.OpPluginSchema)},
			}
		}
		code, err = compiled(func(out string) error { return compile(ctx, s, m.Kind, out) })
		return code, described, err
	}
}

// compiled returns the output that a compiler writes to a file.
func compiled(compile func(out string) error) ([]byte, error) {
	work, err := os.MkdirTemp("", "parley-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	out := filepath.Join(work, "plugin.wasm")
	if err := compile(out); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// compileC compiles C and C++ with clang. It links in a separate step, because a clang that does both runs any
// wasm-opt that it finds on the result. C++ is compiled without exceptions, and with the C++ library only if that is
// installed.
func compileC(ctx context.Context, s source, kind, out string) error {
	clang := "clang"
	if wasiSDK := os.Getenv("WASI_SDK_PATH"); wasiSDK != "" {
		clang = filepath.Join(wasiSDK, "bin", "clang")
	} else if err := checkClang(ctx); err != nil {
		return err
	}
	link := []string{"--target=wasm32-wasi", "-s", "-o", out}
	if s.names {
		link[1] = "-Wl,--strip-debug"
	}
	if kind == manifest.KindParley {
		link = append(link, "-mexec-model=reactor")
	}
	work := filepath.Dir(out)
	for i, source := range s.files {
		object := filepath.Join(work, fmt.Sprintf("%d.o", i))
		args := []string{"--target=wasm32-wasi", "-O2", "-Wall", "-Wextra", "-c", "-o", object}
		if filepath.Ext(source) != ".c" {
			args = append(args, "-fno-exceptions", "-fno-rtti")
			if _, err := os.Stat("/usr/lib/wasm32-wasi/libc++.a"); err == nil && i == 0 {
				link = append(link, "-lc++", "-lc++abi")
			}
		}
		if _, err := runCompiler(ctx, s.dir, nil, clang, append(args, source)...); err != nil {
			return err
		}
		link = slices.Insert(link, 1, object)
	}
	_, err := runCompiler(ctx, s.dir, nil, clang, link...)
	return err
}

// checkClang returns an error with the Debian packages that are missing to compile C for WASI.
func checkClang(ctx context.Context) error {
	var missing []string
	version := "14"
	if out, err := exec.CommandContext(ctx, "clang", "-dumpversion").Output(); err != nil {
		missing = append(missing, "clang")
	} else {
		version, _, _ = strings.Cut(strings.TrimSpace(string(out)), ".")
	}
	if _, err := exec.LookPath("wasm-ld"); err != nil {
		missing = append(missing, "lld")
	}
	if runtime.GOOS == "linux" { // on other systems the compiler says what it does not find
		if _, err := os.Stat("/usr/include/wasm32-wasi/stdio.h"); err != nil {
			missing = append(missing, "wasi-libc")
		}
		found, _ := filepath.Glob("/usr/lib/llvm-" + version + "/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a")
		if len(found) == 0 {
			missing = append(missing, "libclang-rt-"+version+"-dev-wasm32")
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return host.Errorf(host.Unavailable, "building a C plugin requires clang for wasm32-wasi, and Debian's %s is "+
		"missing; or set WASI_SDK_PATH to the folder of a WASI SDK", strings.Join(missing, ", ")).
		WithNext("apt-get install " + strings.Join(missing, " "))
}

// rustTargets are the names of the target for WASI preview 1, the newer one first.
var rustTargets = []string{"wasm32-wasip1", "wasm32-wasi"}

// compileRust compiles one crate with rustc: plugin.rs, main.rs, or the only file.
func compileRust(ctx context.Context, s source, kind, out string) error {
	root, err := rootOf(s, "plugin.rs", "main.rs")
	if err != nil {
		return err
	}
	rustc, target := findRust(ctx)
	if rustc == "" {
		return host.Errorf(host.Unavailable, "building a Rust plugin requires rustc with its library for wasm32-wasip1 or "+
			"wasm32-wasi; Debian has them in rustc and libstd-rust-dev-wasm32").
			WithNext("apt-get install rustc libstd-rust-dev-wasm32", "rustup target add wasm32-wasip1")
	}
	crate := command.Either(kind == manifest.KindWASI, "bin", "cdylib")
	strip := command.Either(s.names, "strip=debuginfo", "strip=symbols")
	_, err = runCompiler(ctx, s.dir, nil, rustc, "--target", target, "--crate-type", crate, "--crate-name", "plugin",
		"--edition", "2021", "-O", "-C", "panic=abort", "-C", "lto", "-C", strip, "-o", out, root)
	return err
}

// findRust returns a rustc that has the library of a target, or "" if there is none. It prefers the one in PATH.
func findRust(ctx context.Context) (rustc, target string) {
	for _, rustc := range []string{"rustc", "/usr/bin/rustc"} {
		out, err := exec.CommandContext(ctx, rustc, "--print", "sysroot").Output()
		if err != nil {
			continue
		}
		for _, target := range rustTargets {
			library := filepath.Join(strings.TrimSpace(string(out)), "lib", "rustlib", target, "lib")
			if info, err := os.Stat(library); err == nil && info.IsDir() {
				return rustc, target
			}
		}
	}
	return "", ""
}

// runCompiler runs a compiler in a folder and returns its output. The error is invalid_plugin, with the compiler's
// messages.
func runCompiler(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return nil, host.Errorf(host.Unavailable, "cannot run %s: %v", manifest.CleanLine(name), err).
			WithSteps(step.Operator(step.OpDoctor))
	}
	if err != nil {
		return nil, &host.Error{Code: host.InvalidPlugin, Cause: err,
			Message: fmt.Sprintf("%s: %v\n%s", filepath.Base(name), err, compilerText(stderr.String())),
			Next:    []string{"fix what the compiler names, then build again"}}
	}
	return stdout.Bytes(), nil
}

var colors = lazy.Pattern("\x1b\\[[0-9;]*m")

// compilerText returns the messages of a compiler for display.
func compilerText(s string) string {
	const most = 4000
	s = strings.TrimSpace(colors().ReplaceAllString(s, ""))
	if len(s) > most {
		s = s[:most] + "…"
	}
	return manifest.Clean(s)
}

// imports matches a statement that imports from another module, which no engine can load.
var imports = lazy.Pattern(`(?m)^\s*(import\s*["'{*\w$]|export\s[^;'"]*\bfrom\s*["'])`)

// bundleScript writes the module of a plugin of kind script. TypeScript, and a text with imports, are bundled to one
// JavaScript text with the author's esbuild. Any other text stays unchanged, so that the line numbers in errors match
// the file.
func bundleScript(ctx context.Context, s source, kind, out string) error {
	root, err := rootOf(s, "plugin.ts", "plugin.mts", "plugin.js", "plugin.mjs")
	if err != nil {
		return err
	}
	if kind != manifest.KindScript {
		return host.Errorf(host.InvalidPlugin, "the manifest of %s has the kind %s; expected \"kind\": \"script\" and "+
			"\"engine\": {\"name\": \"js\", \"version\": \"1\"}", manifest.CleanLine(root), manifest.CleanLine(kind)).
			WithSteps(step.Operator(step.OpPluginSchema))
	}
	const limit = 16 << 20
	text, err := command.ReadValue(ctx, filepath.Join(s.dir, root), limit)
	if err != nil {
		return host.Errorf(host.InvalidArgs, "cannot read %s: %s", manifest.CleanLine(root), manifest.CleanLine(err.Error()))
	}
	typed := strings.HasSuffix(root, "ts")
	if typed || imports().Match(text) {
		if text, err = runBundler(ctx, s.dir, root, typed); err != nil {
			return err
		}
		root = strings.TrimSuffix(root, filepath.Ext(root)) + ".js"
	}
	return os.WriteFile(out, sections.WriteSource(root, text), 0o644)
}

// runBundler returns the text into which esbuild bundles a file and its imports.
func runBundler(ctx context.Context, dir, root string, typed bool) ([]byte, error) {
	esbuild := findBundler(dir)
	if esbuild == "" {
		what := command.Either(typed, "is TypeScript", "imports other modules")
		return nil, host.Errorf(host.Unavailable, "%s %s, and esbuild, which makes one text of JavaScript of it, is neither "+
			"in node_modules nor in PATH", manifest.CleanLine(root), what).
			WithNext("npm install --save-dev esbuild, then build again")
	}
	return runCompiler(ctx, dir, nil, esbuild, root, "--bundle", "--format=esm", "--platform=neutral", "--target=es2023",
		"--main-fields=module,main", "--charset=utf8", "--log-level=warning", "--color=false")
}

// findBundler returns the esbuild in node_modules of a folder or of one above it, or else the one in PATH; "" if
// there is none.
func findBundler(dir string) string {
	at, err := filepath.Abs(dir)
	for err == nil {
		path := filepath.Join(at, "node_modules", ".bin", "esbuild")
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
		if at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	found, err := exec.LookPath("esbuild")
	if err != nil {
		return ""
	}
	return found
}

// rootOf returns the file that a compiler starts from: the first of the names that exists, or the only file.
func rootOf(s source, names ...string) (string, error) {
	for _, name := range names {
		if slices.Contains(s.files, name) {
			return name, nil
		}
	}
	if len(s.files) == 1 {
		return s.files[0], nil
	}
	return "", host.Errorf(host.InvalidArgs, "the folder has %s; expected %s among them, as the one to begin with",
		manifest.CleanLine(strings.Join(s.files, ", ")), strings.Join(names, " or ")).
		WithSteps(step.Operator(step.OpHelp, "plugin build"))
}
