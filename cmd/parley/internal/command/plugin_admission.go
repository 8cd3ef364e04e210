package command

import (
	"context"
	"os"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

// IsPluginFile reports whether a word names a file or a folder with a plugin, not an installed plugin.
func IsPluginFile(word string) bool {
	return strings.ContainsAny(word, `/\.`) && word != ""
}

// AdmitPlugin returns the report on a plugin in a file or a folder, as an installation makes it. Nothing is installed.
// The error is invalid_plugin if an installation would be refused.
func AdmitPlugin(ctx context.Context, d *Deps, path string) (*parley.Admission, error) {
	return d.Parley().Report(ctx, path, d.Accept)
}

// ComparedPlugin is one of two versions that are compared.
type ComparedPlugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ComparePluginsData are the changes from one version of a plugin to another, what breaks first.
type ComparePluginsData struct {
	Old     ComparedPlugin `json:"old"`
	New     ComparedPlugin `json:"new"`
	Changes []lint.Change  `json:"changes"`
	Breaks  int            `json:"breaks"`
	// Major reports whether the new version announces that it breaks.
	Major bool `json:"major"`
}

// ComparePlugins compares two versions of a plugin for those who call its tools. Each is a wasm file, a folder, a
// manifest (NAME.json), the name of an installed or shipped plugin, or the digest of a build that is or was installed.
func ComparePlugins(ctx context.Context, d *Deps, old, now string) (*ComparePluginsData, error) {
	before, err := d.readManifest(ctx, old)
	if err != nil {
		return nil, err
	}
	after, err := d.readManifest(ctx, now)
	if err != nil {
		return nil, err
	}
	data := &ComparePluginsData{
		Old:     ComparedPlugin{before.Name, manifest.CleanLine(before.Version)},
		New:     ComparedPlugin{after.Name, manifest.CleanLine(after.Version)},
		Changes: append([]lint.Change{}, lint.Compare(before, after)...), Major: lint.IsMajor(before.Version, after.Version),
	}
	data.Breaks = len(lint.Breaking(data.Changes))
	return data, nil
}

func (d *Deps) readManifest(ctx context.Context, word string) (*manifest.Manifest, error) {
	if strings.HasPrefix(word, "sha256:") {
		data, ok := d.Store().Approved(word)
		if !ok {
			return nil, host.Errorf(host.NotFound, "no build %s is known here; expected the whole digest of a build that is or "+
				"was installed", manifest.CleanLine(word)).WithSteps(host.OperatorStep(host.OpPluginList))
		}
		return manifest.Load(data)
	}
	if strings.HasSuffix(word, ".json") {
		const limit = 4 << 20
		data, err := host.ReadValue(ctx, word, limit)
		if err != nil {
			return nil, host.Errorf(host.InvalidArgs, "cannot read the manifest: %s", manifest.CleanLine(err.Error()))
		}
		m, err := manifest.Parse(data, parley.Version)
		if err != nil {
			return nil, &host.Error{Code: host.InvalidPlugin, Message: manifest.CleanLine(word) + ": " + err.Error(), Cause: err}
		}
		return m, nil
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	at, err := catalog.FindIn(word, "")
	if _, missing := os.Stat(word); IsPluginFile(word) || err != nil && missing == nil {
		c, err := wasm.ReadCandidate(word, parley.Version)
		if err != nil {
			return nil, err
		}
		return c.Manifest, nil
	}
	if err != nil {
		return nil, err
	}
	if at.Provider.Info().Kind == manifest.KindBuiltin {
		return nil, host.Errorf(host.InvalidArgs, "%s is built in and has no manifest to compare", at.Plugin)
	}
	return at.Provider.Manifest()
}
