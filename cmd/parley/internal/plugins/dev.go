package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

var pluginDevCommand = &command.Command[*pluginDevOptions]{
	Use: "dev [DIR]", Run: runPluginDev,
	Short: "Build and install a plugin whenever its source changes",
	Long: "Looks at the files of DIR every 300 ms. After a change it builds the plugin, signs it with a key of this\n" +
		"machine and installs it; running servers use the new build at once. Rights that are granted to the key stay:\n" +
		"trust the key once, then grant them with policy grant NAME RIGHT --signer. With --json it prints one line of\n" +
		"JSON a build. End it with Ctrl-C; the plugin stays installed.",
	Example: "parley plugin dev ./hello",
}

// printDev prints a build and what a developer may do with it: call it, or make its rights permanent.
func printDev(app *command.App, data *devPluginData) error {
	next := []string{"parley " + data.Name + " --list"}
	if len(data.Asks) > len(data.Applies) {
		if !data.Trusted {
			next = append(next, "parley plugin trust "+data.Key+" --name dev")
		}
		next = append(next, "parley policy grant "+data.Name+" "+command.ShellQuote(data.Asks[0])+" --signer")
	}
	return app.Print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s is installed, %s, %d ms\n", data.Name, manifest.CleanLine(data.Version), data.Digest, data.MS)
		command.PrintIf(w, len(data.Applies) > 0, "  these grants apply to it: %s\n", strings.Join(data.Applies, ", "))
		command.WriteListed(w, "  ", data.Lint, "parley plugin check "+data.Name+" lists them")
		command.WriteLabelled(w, "Next:", next)
	})
}

// pluginDevOptions say which source to build repeatedly.
type pluginDevOptions struct {
	// Dir is the folder with the source. "" means the current one.
	Dir string `word:""`
	// Once ends after the first build, with its error.
	Once bool `flag:"once" usage:"end after the first build"`
}

// devPluginData is a build that was installed.
type devPluginData struct {
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Digest    string   `json:"digest"`
	Key       string   `json:"key"` // the key that signed it
	Trusted   bool     `json:"trusted"`
	Unchanged bool     `json:"unchanged"` // the same build was installed before
	Applies   []string `json:"applies"`   // grants that apply to it
	Asks      []string `json:"asks"`      // requested rights
	Lint      []string `json:"lint"`
	MS        int64    `json:"ms"` // time from the change to the end of the installation
}

// devInterval is how often the source is checked. The standard library cannot watch files. Checking a few hundred
// takes less than a millisecond.
const devInterval = 300 * time.Millisecond

// maxDevFiles bounds the files that are watched.
const maxDevFiles = 10_000

// runPluginDev builds a plugin, signs it with the key of this machine and installs it. It does so at once, and again
// whenever the source changes, until the context ends. Running hosts notice the new build like any installation.
// Changes that break callers need no confirmation if the replaced build has the same signer. The error of a build is
// only printed. The returned error means that nothing can be built or printed at all, or with Once it is the build's
// error.
func runPluginDev(ctx context.Context, app *command.App, o *pluginDevOptions) error {
	dir := cmp.Or(o.Dir, ".")
	key, err := devKey(app)
	if err != nil {
		return err
	}
	tick := time.NewTicker(devInterval)
	defer tick.Stop()
	var unprinted error
	for last, printed := "", false; ; {
		seen, err := sourceState(dir)
		if err != nil {
			return err
		}
		if seen != last {
			last = seen
			data, err := devBuild(ctx, app, dir, key)
			switch {
			case ctx.Err() != nil && !o.Once:
				return unprinted // a person ended it during a build
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case o.Once && err != nil:
				return err
			case err != nil:
				app.Fail(err)
			case !data.Unchanged || !printed:
				printed, unprinted = true, cmp.Or(printDev(app, data), unprinted)
			}
			if o.Once {
				return unprinted
			}
		}
		select {
		case <-ctx.Done():
			return unprinted // a person ended it
		case <-tick.C:
		}
	}
}

// sourceState returns a text that changes when the names, sizes or times of the files in a folder change. It ignores
// hidden files, outputs of builds, and what package managers fetch.
func sourceState(dir string) (string, error) {
	var b strings.Builder
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case err != nil:
			return nil // the file was just removed
		}
		name := e.Name()
		switch {
		case path != dir && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "target"):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir() || strings.HasSuffix(strings.TrimSuffix(name, ".minisig"), ".wasm"):
			return nil
		}
		if info, err := e.Info(); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
		if files++; files > maxDevFiles {
			return fmt.Errorf("it has more than %d files", maxDevFiles)
		}
		return nil
	})
	if err != nil {
		return "", host.Errorf(host.InvalidArgs, "cannot watch %s: %v; expected a folder with the source of a plugin",
			manifest.CleanLine(dir), host.WithoutPath(err)).WithSteps(step.Operator(step.OpHelp, "plugin new"))
	}
	return b.String(), nil
}

// devBuild builds, signs and installs a plugin.
func devBuild(ctx context.Context, app *command.App, dir string, key signature.SecretKey) (*devPluginData, error) {
	start := time.Now()
	built, err := buildPlugin(ctx, app, pluginBuildOptions{Dir: dir, Names: true})
	if err != nil {
		return nil, err
	}
	c, err := store.ReadCandidate(built.Out, parley.Version)
	if err != nil {
		return nil, err
	}
	if err := command.WriteFile(store.SignatureName(c.Path), key.Sign(admit.BuildOf(c)), 0o644); err != nil {
		return nil, host.Errorf(host.Unavailable, "cannot write the signature: %v", err)
	}
	prepared, err := app.Parley().Admission().Prepare(ctx, c.Path, admit.Options{Accept: app.Accept, Replace: app.Replace})
	if err != nil {
		return nil, err
	}
	before := prepared.Replaces
	if before != nil && before.Signer == string(key.Public()) {
		prepared.Confirm() // authors may break their own plugin
	}
	rules, err := app.Parley().Policy()
	if err != nil {
		return nil, err
	}
	if prepared.TakesFrom != "" {
		change := command.Change{Diff: command.TakesText(c.Manifest.Name, prepared.TakesFrom), ByPolicy: true}
		if err := app.Approve(ctx, change, false); err != nil {
			return nil, err
		}
	}
	done, err := prepared.Commit(policy.Edit{})
	if err != nil {
		return nil, err
	}
	return &devPluginData{
		Name: done.Name, Version: done.Version, Digest: done.Digest, Key: string(key.Public()),
		Trusted: prepared.Signer.Trusted, Unchanged: before != nil && before.Digest == done.Digest,
		Applies: append([]string{}, applyingRights(rules, prepared.Candidate)...),
		Asks:    append([]string{}, grant.Named(grant.Requested(prepared.Candidate.Manifest.Capabilities))...),
		Lint:    append([]string{}, built.Lint...), MS: time.Since(start).Milliseconds(),
	}, nil
}

// devKey returns the key of this machine with which plugin dev signs. The first use creates it.
func devKey(app *command.App) (signature.SecretKey, error) {
	path := filepath.Join(app.Dirs().Data, "dev.key")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		key, err := signature.NewSecretKey()
		if err == nil {
			err = os.MkdirAll(app.Dirs().Data, 0o700)
		}
		if err == nil {
			err = key.WritePair(path, "")
		}
		if err != nil && !errors.Is(err, host.AlreadyExists) { // otherwise another process has created it
			return key, err
		}
	}
	text, err := readKeyFile(app, command.KeyOption, path)
	if err != nil {
		return signature.SecretKey{}, err
	}
	key, err := signature.ReadSecretKey(text, func() (string, error) {
		return "", errors.New("it is encrypted; expected the key that parley plugin dev made, which is not")
	})
	if err != nil {
		return key, host.Errorf(host.ConfigError, "%s: %v; remove it and its .pub, and plugin dev makes another", path, err)
	}
	return key, nil
}
