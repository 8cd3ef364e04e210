package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// Pin is a build of a plugin that a project uses.
type Pin struct {
	Name string `toml:"-" json:"name"`
	// Source is where the build is from, with its digest there: oci://.., https://.., or a file relative to the project's
	// file. "" means that it is not known.
	Source string `toml:"source" json:"source,omitempty"`
	Digest string `toml:"digest" json:"digest"` // of the plugin
}

// PinStatus compares a pin with what is installed.
type PinStatus struct {
	Pin
	Status string `json:"status"` // one of those below
	// Installed is the digest of the installed build, empty if the plugin is not installed.
	Installed string `json:"installed,omitempty"`

	err error // of a damaged build
}

// What [PinStatus].Status can be.
const (
	PinOK      = "ok"
	PinMissing = "missing" // it is not installed
	PinDiffers = "differs" // another build is installed
	PinDamaged = "damaged" // the installed build is not what was approved
)

// PinsData are the pins of a project.
type PinsData struct {
	File string      `json:"file"`
	Pins []PinStatus `json:"pins"`
	// Changed are the names of the plugins that were installed, or whose pins were written.
	Changed []string `json:"changed"`
}

// projectPins returns the pins of the project, sorted by name, and the path of its file, which need not exist.
func projectPins() (string, []Pin, error) {
	path, err := projectFile()
	if err != nil {
		return "", nil, host.Errorf(host.ConfigError, "cannot find the project: %v", err)
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return path, nil, nil
	}
	if _, err := readConfig(path, true); err != nil { // validates it
		return path, nil, err
	}
	data, err := protect.ReadProject(path, host.MaxConfig)
	if err != nil {
		return path, nil, host.Errorf(host.ConfigError, "cannot read the pins: %s", manifest.CleanLine(err.Error()))
	}
	pins, err := parsePins(data)
	return path, pins, err
}

func parsePins(data []byte) ([]Pin, error) {
	var file struct {
		Plugins map[string]Pin `toml:"plugins"`
	}
	if err := toml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	pins := make([]Pin, 0, len(file.Plugins))
	for name, pin := range file.Plugins {
		pin.Name = name
		pins = append(pins, pin)
	}
	slices.SortFunc(pins, func(a, b Pin) int { return strings.Compare(a.Name, b.Name) })
	return pins, nil
}

// VerifyPins compares the pins of the project with what is installed, without a network. The error is not_found if the
// project has no pins or a pinned plugin is not installed, and integrity if a build differs from its pin or is damaged.
func VerifyPins(d *Deps) (*PinsData, error) {
	data, err := pinned(d)
	if err != nil {
		return nil, err
	}
	var wrong []string
	code := host.NotFound
	for _, p := range data.Pins {
		switch p.Status {
		case PinOK:
			continue
		case PinMissing:
			wrong = append(wrong, p.Name+" is not installed")
			continue
		case PinDiffers:
			wrong = append(wrong, fmt.Sprintf("%s is installed as %s, and pinned as %s", p.Name, p.Installed, p.Digest))
		case PinDamaged:
			wrong = append(wrong, host.AsError(p.err).Message)
		}
		code = host.Integrity
	}
	if len(wrong) > 0 {
		return nil, host.Errorf(code, "%d of %d pins of %s do not hold: %s", len(wrong), len(data.Pins), data.File,
			strings.Join(wrong, "; ")).WithSteps(host.OperatorStep(host.OpPluginSync))
	}
	return data, nil
}

// pinned returns the pins of the project with their status. The error is not_found if the project has no pins.
func pinned(d *Deps) (*PinsData, error) {
	path, pins, err := projectPins()
	if err != nil {
		return nil, err
	}
	if len(pins) == 0 {
		return nil, host.Errorf(host.NotFound, "%s pins no plugins", path).
			WithSteps(host.OperatorStep(host.OpPluginLock))
	}
	data := &PinsData{File: path, Changed: []string{}}
	for _, pin := range pins {
		status, err := pinStatus(d.Store(), pin)
		if err != nil {
			return nil, err
		}
		data.Pins = append(data.Pins, status)
	}
	return data, nil
}

func pinStatus(store *wasm.Store, pin Pin) (PinStatus, error) {
	entry, err := store.Find(pin.Name)
	switch {
	case errors.Is(err, host.NotFound):
		return PinStatus{Pin: pin, Status: PinMissing}, nil
	case err != nil:
		return PinStatus{}, err
	case entry.Digest != pin.Digest:
		return PinStatus{Pin: pin, Status: PinDiffers, Installed: entry.Digest}, nil
	}
	if _, err := store.Open(entry); err != nil {
		return PinStatus{Pin: pin, Status: PinDamaged, Installed: entry.Digest, err: err}, nil
	}
	return PinStatus{Pin: pin, Status: PinOK, Installed: entry.Digest}, nil
}

// SyncOptions say how to install what a project pins.
type SyncOptions struct {
	Downgrade bool // let older versions replace newer ones
	Yes       bool // approve without asking, if the policy allows it
	Progress  func(done, total int64)
}

// SyncPins installs the pinned builds that are not installed, as [InstallPlugin] does: without rights, and only those
// with the digests of the pins. It uses no network if all are installed, and stops at the first that it cannot install.
func SyncPins(ctx context.Context, d *Deps, o SyncOptions) (*PinsData, error) {
	data, err := pinned(d)
	if err != nil {
		return nil, err
	}
	for i, p := range data.Pins {
		if p.Status == PinOK {
			continue
		}
		if p.Source == "" {
			return nil, host.Errorf(host.NotFound, "%s is pinned without a source in %s, so it cannot be fetched; install "+
				"the build with the digest %s", p.Name, data.File, p.Digest)
		}
		from := p.Source
		if !IsRemote(from) && !filepath.IsAbs(from) {
			from = filepath.Join(filepath.Dir(data.File), filepath.FromSlash(from))
		}
		installed, err := InstallPlugin(ctx, d, InstallOptions{Path: from, Digest: p.Digest, Downgrade: o.Downgrade,
			Yes: o.Yes, Progress: o.Progress})
		if err != nil {
			return nil, err
		}
		if !strings.EqualFold(installed.Name, p.Name) {
			return nil, host.Errorf(host.Integrity, "%s pins %s, but its digest is that of %s, which is installed now",
				data.File, p.Name, installed.Name)
		}
		data.Changed = append(data.Changed, p.Name)
		data.Pins[i].Status, data.Pins[i].Installed = PinOK, installed.Digest
	}
	return data, nil
}

// LockPlugins pins installed plugins in the project's file, all of them if no names are given. The file is the nearest
// parley.toml, or a new one in the working folder; what else is in it stays.
func LockPlugins(d *Deps, names []string) (*PinsData, error) {
	path, before, err := projectPins()
	if err != nil {
		return nil, err
	}
	entries, err := d.Store().List()
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		entries = nil
		for _, name := range names {
			entry, err := d.Store().Find(name)
			if err != nil {
				return nil, err
			}
			entries = append(entries, entry)
		}
	}
	if len(entries) == 0 {
		return nil, host.Errorf(host.NotFound, "no plugins are installed, so there is nothing to pin").
			WithSteps(host.OperatorStep(host.OpHelp, "plugin install"))
	}
	var pins []Pin
	data := &PinsData{File: path, Changed: []string{}}
	for _, entry := range entries {
		pin := Pin{Name: entry.Name, Source: portableSource(path, entry.Source), Digest: entry.Digest}
		if pin.Source == "" {
			d.Notice(fmt.Sprintf("%s was installed from %s, which is not part of the project: others have to install it "+
				"from a file of their own", entry.Name, manifest.CleanLine(entry.Source)))
		}
		if !slices.Contains(before, pin) {
			data.Changed = append(data.Changed, pin.Name)
		}
		pins = append(pins, pin)
		data.Pins = append(data.Pins, PinStatus{Pin: pin, Status: PinOK, Installed: entry.Digest})
	}
	if len(data.Changed) == 0 {
		return data, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, host.Errorf(host.ConfigError, "cannot read the pins: %s", manifest.CleanLine(err.Error()))
	}
	text = replacePins(text, pins)
	now, err := parsePins(text)
	if err != nil || !containsPins(now, pins) {
		return nil, host.Errorf(host.ConfigError, "%s pins plugins in a form that cannot be changed here; write each pin "+
			"as a table [plugins.NAME]", path)
	}
	if err := writeFile(path, text); err != nil {
		return nil, host.Errorf(host.Unavailable, "cannot write the pins: %v", err)
	}
	return data, nil
}

func containsPins(all, some []Pin) bool {
	return !slices.ContainsFunc(some, func(p Pin) bool { return !slices.Contains(all, p) })
}

// portableSource returns a source that means the same on another machine: a file only if it belongs to the project.
func portableSource(project, source string) string {
	if IsRemote(source) {
		return source
	}
	relative, err := filepath.Rel(filepath.Dir(project), source)
	if err != nil || !filepath.IsLocal(relative) {
		return ""
	}
	return filepath.ToSlash(relative)
}

// replacePins returns the text of a project's file with the tables of pins replaced, or added at its end.
func replacePins(text []byte, pins []Pin) []byte {
	isPin := func(header string) bool {
		return slices.ContainsFunc(pins, func(p Pin) bool { return strings.EqualFold(header, "[plugins."+p.Name+"]") })
	}
	var out bytes.Buffer
	dropping := false
	for line := range bytes.Lines(text) {
		if trimmed := bytes.TrimSpace(line); bytes.HasPrefix(trimmed, []byte("[")) {
			dropping = isPin(string(trimmed))
		}
		if !dropping {
			out.Write(line)
		}
	}
	kept := bytes.TrimRight(out.Bytes(), "\n")
	for _, p := range pins {
		if len(kept) > 0 {
			kept = append(kept, "\n\n"...)
		}
		kept = fmt.Appendf(kept, "[plugins.%s]\n", p.Name)
		if p.Source != "" {
			kept = fmt.Appendf(kept, "source = %s\n", quoteTOML(p.Source))
		}
		kept = fmt.Appendf(kept, "digest = %s", quoteTOML(p.Digest))
	}
	return append(kept, '\n')
}

// quoteTOML returns a text as a basic string. Those of JSON are also TOML.
func quoteTOML(s string) string {
	quoted, _ := json.Marshal(s) // a string cannot fail
	return string(quoted)
}
