package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/oci"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

var pluginLockCommand = &command.Command[*pluginLockOptions]{
	Use: "lock [NAME...]", Run: runPluginLock, Words: command.CompletePlugins,
	Short: "Pin installed plugins, all or some, in the project's parley.toml",
	Long: "Writes the source and the digest of each build to the nearest parley.toml, or to a new one in the current\n" +
		"folder. A project's file gives no rights. parley plugin sync installs what it pins on another machine.",
	Example: "parley plugin lock hello",
}

type pluginLockOptions struct {
	Names []string `word:""`
}

// runPluginLock pins installed plugins in the project's file, all of them if no names are given. The file is the
// nearest parley.toml, or a new one in the working folder. The rest of the file stays.
func runPluginLock(_ context.Context, app *command.App, opts *pluginLockOptions) error {
	path, before, err := projectPins()
	if err != nil {
		return err
	}
	entries, err := app.Parley().Store().List()
	if err != nil {
		return err
	}
	if len(opts.Names) > 0 {
		entries = nil
		for _, name := range opts.Names {
			entry, err := app.Parley().Store().Find(name)
			if err != nil {
				return err
			}
			entries = append(entries, entry)
		}
	}
	entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return manifest.Builtin(e.Name) }) // superseded
	if len(entries) == 0 {
		return host.Errorf(host.NotFound, "no plugins are installed, so there is nothing to pin").
			WithSteps(step.Operator(step.OpHelp, "plugin install"))
	}
	var pins []pin
	data := &pinsData{File: path, Changed: []string{}}
	for _, entry := range entries {
		pin := pin{Name: entry.Name, Source: portableSource(path, entry.Source), Digest: entry.Digest}
		if pin.Source == "" {
			app.Notice(fmt.Sprintf("%s was installed from %s, which is not part of the project: others have to install it "+
				"from a file of their own", entry.Name, manifest.CleanLine(entry.Source)))
		}
		if !slices.Contains(before, pin) {
			data.Changed = append(data.Changed, pin.Name)
		}
		pins = append(pins, pin)
		data.Pins = append(data.Pins, pinState{pin: pin, Status: pinOK, Installed: entry.Digest})
	}
	if len(data.Changed) > 0 {
		if err := writePins(path, pins); err != nil {
			return err
		}
	}
	did := command.Either(len(data.Changed) == 0, "Nothing to change", "Pinned "+strings.Join(data.Changed, ", "))
	return app.Print(data, []string{"parley plugin verify", "parley plugin sync"},
		command.Text("%s in %s\n", did, data.File))
}

var pluginSyncCommand = &command.Command[*pluginSyncOptions]{
	Use: "sync", Run: runPluginSync,
	Short: "Install what the project's parley.toml pins",
	Long: "Installs the pinned builds that are missing or differ, as plugin install does: they gain no rights, and\n" +
		"each must have the digest of its pin. Without anything to install it needs no network.",
	Example: "parley plugin sync",
}

// runPluginSync installs the pinned builds that are not installed, as [installPlugin] does: without rights, and only
// if they have the digests of the pins. It uses no network if all are installed. One that it cannot install does not
// keep it from the others.
func runPluginSync(ctx context.Context, app *command.App, opts *pluginSyncOptions) error {
	data, err := pinned(app)
	if err != nil {
		return err
	}
	var failed *host.Error
	for i, p := range data.Pins {
		if p.Status == pinOK || failed != nil && ctx.Err() != nil {
			continue
		}
		installed, err := syncPin(ctx, app, opts, data.File, p)
		switch {
		case err == nil:
			data.Changed = append(data.Changed, p.Name)
			data.Pins[i].Status, data.Pins[i].Installed = pinOK, installed.Digest
		case failed == nil:
			failed = host.AsError(err)
		default:
			failed.Message += "\n" + host.AsError(err).Message
			failed.Steps = append(failed.Steps, host.AsError(err).Steps...)
		}
	}
	if failed == nil {
		return printPins(app, data)
	}
	failed.Message += command.When(len(data.Changed) > 0, "\nInstalled: "+strings.Join(data.Changed, ", "))
	return failed
}

// syncPin installs a pinned build.
func syncPin(ctx context.Context, app *command.App, opts *pluginSyncOptions, file string, p pinState) (*Plugin, error) {
	from := p.Source
	switch {
	case from == "":
		return nil, host.Errorf(host.NotFound, "%s is pinned without a source in %s, so it cannot be fetched; install "+
			"the build with the digest %s", p.Name, file, p.Digest)
	case !oci.IsRemote(from) && !filepath.IsAbs(from):
		from = filepath.Join(filepath.Dir(file), filepath.FromSlash(from))
	}
	installed, err := installPlugin(ctx, app, pluginInstallOptions{
		Path: from, Digest: p.Digest, Downgrade: opts.Downgrade, Yes: opts.Yes,
	})
	if err == nil && !strings.EqualFold(installed.Name, p.Name) {
		err = host.Errorf(host.Integrity, "%s pins %s, but its digest is that of %s, which is installed now",
			file, p.Name, installed.Name)
	}
	return installed, err
}

// printPins prints pins and the installed builds that they refer to.
func printPins(a *command.App, data *pinsData) error {
	return a.Print(data, []string{"parley --list"}, func(w io.Writer) {
		for _, p := range data.Pins {
			fmt.Fprintf(w, "%-12s %-8s %s\n", p.Name, p.Status, manifest.CleanLine(p.Digest))
		}
		command.PrintIf(w, len(data.Changed) > 0, "Installed %s\n", strings.Join(data.Changed, ", "))
	})
}

// pin is a build of a plugin that a project uses.
type pin struct {
	Name string `json:"name"`
	// Source is the origin of the build, with its digest there: oci://.., https://.., or a file relative to the
	// project's file. "" means that it is unknown.
	Source string `json:"source,omitempty"`
	Digest string `json:"digest"` // of the plugin
}

// pinState compares a pin with what is installed.
type pinState struct {
	pin
	Status string `json:"status"` // one of the constants below
	// Installed is the digest of the installed build, empty if the plugin is not installed.
	Installed string `json:"installed,omitempty"`

	wrong string // what is wrong; "" if nothing
}

// Values of [pinState].Status.
const (
	pinOK      = "ok"
	pinMissing = "missing" // it is not installed
	pinDiffers = "differs" // another build is installed
	pinDamaged = "damaged" // the installed build is not what was approved
)

// pinsData are the pins of a project.
type pinsData struct {
	File string     `json:"file"`
	Pins []pinState `json:"pins"`
	// Changed are the names of the plugins that were installed, or whose pins were written.
	Changed []string `json:"changed"`
}

// projectPins returns the pins of the project, sorted by name, and the path of its file, which need not exist.
func projectPins() (string, []pin, error) {
	path, file, err := command.ReadProject()
	if path == "" {
		_, missing := os.Getwd()
		err = host.Errorf(host.ConfigError, "cannot find the project: %v", missing)
	}
	if err != nil {
		return path, nil, err
	}
	return path, pinsOf(file.Values), nil
}

// pinsOf returns the pins among the values of a project's file.
func pinsOf(values map[string]string) (pins []pin) {
	for key, digest := range values {
		table, isDigest := strings.CutSuffix(key, ".digest")
		name, isPin := strings.CutPrefix(table, "plugins.")
		if isDigest && isPin && !manifest.Builtin(name) { // otherwise it was pinned before it was built in
			pins = append(pins, pin{name, values[table+".source"], digest})
		}
	}
	slices.SortFunc(pins, func(a, b pin) int { return strings.Compare(a.Name, b.Name) })
	return pins
}

// verifyPins compares the pins of the project with the installed builds, without a network, and prints them. The
// error is not_found if the project has no pins or a pinned plugin is not installed, and integrity if a build differs
// from its pin or is damaged.
func verifyPins(app *command.App) error {
	data, err := pinned(app)
	if err != nil {
		return err
	}
	var wrong []string
	code := host.NotFound
	for _, p := range data.Pins {
		if p.wrong != "" {
			wrong = append(wrong, p.wrong)
		}
		if p.Status == pinDiffers || p.Status == pinDamaged {
			code = host.Integrity
		}
	}
	if len(wrong) > 0 {
		return host.Errorf(code, "%d of %d pins of %s do not hold: %s", len(wrong), len(data.Pins), data.File,
			strings.Join(wrong, "; ")).WithSteps(step.Operator(step.OpPluginSync))
	}
	return printPins(app, data)
}

// pinned returns the pins of the project with their status. The error is not_found if the project has no pins.
func pinned(app *command.App) (*pinsData, error) {
	path, pins, err := projectPins()
	if err != nil {
		return nil, err
	}
	if len(pins) == 0 {
		return nil, host.Errorf(host.NotFound, "%s pins no plugins", path).WithSteps(step.Operator(step.OpPluginLock))
	}
	data := &pinsData{File: path, Changed: []string{}}
	for _, pin := range pins {
		status, err := pinStatus(app.Parley().Store(), pin)
		if err != nil {
			return nil, err
		}
		data.Pins = append(data.Pins, status)
	}
	return data, nil
}

func pinStatus(store *store.Store, pin pin) (pinState, error) {
	entry, err := store.Find(pin.Name)
	switch {
	case errors.Is(err, host.NotFound):
		return pinState{pin, pinMissing, "", pin.Name + " is not installed"}, nil
	case err != nil:
		return pinState{}, err
	case entry.Digest != pin.Digest:
		return pinState{pin, pinDiffers, entry.Digest,
			fmt.Sprintf("%s is installed as %s, and pinned as %s", pin.Name, entry.Digest, pin.Digest)}, nil
	}
	if _, err := store.Open(entry); err != nil {
		return pinState{pin, pinDamaged, entry.Digest, host.AsError(err).Message}, nil
	}
	return pinState{pin, pinOK, entry.Digest, ""}, nil
}

// pluginSyncOptions say how to install the pins of a project.
type pluginSyncOptions struct {
	// let older versions replace newer ones
	Downgrade bool `flag:"downgrade" usage:"let an older version replace a newer one"`
	command.Approval
}

// writePins replaces pins in a project's file.
func writePins(path string, pins []pin) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return host.Errorf(host.ConfigError, "cannot read the pins: %s", manifest.CleanLine(err.Error()))
	}
	tables := make([]command.Table, len(pins))
	for i, p := range pins {
		tables[i] = command.Table{Name: "plugins." + p.Name, Lines: []string{"digest = " + command.QuoteTOML(p.Digest)}}
		if p.Source != "" {
			tables[i].Lines = []string{"source = " + command.QuoteTOML(p.Source), tables[i].Lines[0]}
		}
	}
	text = command.ReplaceTables(text, tables...)
	now, err := command.ParseConfig(path, text)
	isMissing := func(p pin) bool { return !slices.Contains(pinsOf(now.Values), p) }
	if err != nil || slices.ContainsFunc(pins, isMissing) {
		return host.Errorf(host.ConfigError, "%s pins plugins in a form that cannot be changed here; write each pin "+
			"as a table [plugins.NAME]", path)
	}
	if err := command.WriteFile(path, text, 0o644); err != nil {
		return host.Errorf(host.Unavailable, "cannot write the pins: %v", err)
	}
	return nil
}

// portableSource returns a source that means the same on another machine. A file does only if it belongs to the
// project.
func portableSource(project, source string) string {
	if oci.IsRemote(source) {
		return source
	}
	relative, err := filepath.Rel(filepath.Dir(project), source)
	if err != nil || !filepath.IsLocal(relative) {
		return ""
	}
	return filepath.ToSlash(relative)
}
