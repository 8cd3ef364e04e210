package command

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// PackOptions say which module and manifest to join.
type PackOptions struct {
	// Path is the wasm file.
	Path string
	// Manifest is the file with the manifest. "" means the one beside Path.
	Manifest string
	// Out is the file to write, compressed if its name ends in .gz. "" means Path.
	Out string
}

// PackPlugin puts a manifest, and the scripts and assets that it declares, into a module, after the checks of an
// installation. With an error nothing is written.
func PackPlugin(ctx context.Context, d *Deps, o PackOptions) (*BuildPluginData, error) {
	code, err := wasm.ReadModule(o.Path)
	if err != nil {
		return nil, err
	}
	from := o.Manifest
	if from == "" {
		from = wasm.ManifestBeside(o.Path)
	}
	if from == "" {
		return nil, host.Errorf(host.InvalidArgs, "there is no manifest beside %s; expected --manifest FILE, a JSON file "+
			"as parley plugin schema describes it", manifest.CleanLine(o.Path)).
			WithSteps(host.OperatorStep(host.OpPluginSchema))
	}
	const limit = 4 << 20
	described, err := host.ReadValue(ctx, from, limit)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "cannot read the manifest: %s", manifest.CleanLine(err.Error()))
	}
	if code, err = embedFiles(code, described, filepath.Dir(o.Path)); err != nil {
		return nil, err
	}
	c, err := wasm.Pack(o.Path, code, described, from, parley.Version)
	if err != nil {
		return nil, err
	}
	out := o.Out
	if out == "" {
		out = o.Path
	}
	return d.writePlugin(ctx, c, out)
}

// PluginSchema returns the JSON Schema of manifests.
func PluginSchema() json.RawMessage { return manifest.Schema() }
