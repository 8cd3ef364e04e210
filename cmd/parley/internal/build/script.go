package build

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// imports matches a statement that takes something from another module, which no engine can load.
var imports = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*(import\s*["'{*\w$]|export\s[^;'"]*\bfrom\s*["'])`)
})

// bundleScript writes the module of a plugin of kind script. TypeScript, and a text that imports others, are made one
// text of JavaScript by the esbuild of the author; any other text stays as it is, so that lines in errors are those of
// the file.
func bundleScript(ctx context.Context, s source, kind, out string) error {
	root, err := rootOf(s, "plugin.ts", "plugin.mts", "plugin.js", "plugin.mjs")
	if err != nil {
		return err
	}
	if kind != manifest.KindScript {
		return host.Errorf(host.InvalidPlugin, "the manifest of %s has the kind %s; expected \"kind\": \"script\" and "+
			"\"engine\": {\"name\": \"js\", \"version\": \"1\"}", manifest.CleanLine(root), manifest.CleanLine(kind)).
			WithSteps(host.OperatorStep(host.OpPluginSchema))
	}
	const limit = 16 << 20
	text, err := host.ReadValue(ctx, filepath.Join(s.dir, root), limit)
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
	return os.WriteFile(out, manifest.WriteSource(root, text), 0o644)
}

// runBundler returns the text that esbuild makes of a file and what it imports.
func runBundler(ctx context.Context, dir, root string, typed bool) ([]byte, error) {
	esbuild := findBundler(dir)
	if esbuild == "" {
		what := "imports other modules"
		if typed {
			what = "is TypeScript"
		}
		return nil, host.Errorf(host.Unavailable, "%s %s, and esbuild, which makes one text of JavaScript of it, is neither "+
			"in node_modules nor in PATH", manifest.CleanLine(root), what).
			WithNext("npm install --save-dev esbuild, then build again")
	}
	return runCompiler(ctx, dir, nil, esbuild, root, "--bundle", "--format=esm", "--platform=neutral", "--target=es2023",
		"--main-fields=module,main", "--charset=utf8", "--log-level=warning", "--color=false")
}

// findBundler returns the esbuild in node_modules of a folder or one above it, or else the one in PATH; "" if there is
// none.
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

// rootOf returns the file with which a compiler begins: the first of the names that is there, or the only file.
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
		WithSteps(host.OperatorStep(host.OpHelp, "plugin build"))
}
