package plugins

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/api/openapi"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// isDocument reports by a file's name whether the file can be an OpenAPI document.
func isDocument(path string) bool {
	return slices.Contains([]string{".json", ".yaml", ".yml"}, strings.ToLower(filepath.Ext(path)))
}

// documentData describes the manifest that was derived from a document.
type documentData struct {
	Manifest string          `json:"manifest"` // the path of the manifest
	Plugin   string          `json:"plugin"`
	Rights   []string        `json:"rights"`
	Report   *openapi.Report `json:"report"`
}

// wrapDocument writes a manifest of kind http for an OpenAPI document.
func wrapDocument(ctx context.Context, app *command.App, opts *pluginWrapOptions, out string) error {
	if err := opts.check("an OpenAPI document", "--auth --effect --name --out --server --tag"); err != nil {
		return err
	}
	data, err := command.ReadValue(ctx, opts.Path, openapi.MaxDocument)
	if err != nil {
		return host.Errorf(host.InvalidArgs, "cannot read the document: %s", manifest.CleanLine(err.Error()))
	}
	effects := map[string]string{}
	for pair := range strings.SplitSeq(opts.Effect, ",") {
		if name, effect, ok := strings.Cut(pair, "="); ok {
			effects[strings.TrimSpace(name)] = strings.TrimSpace(effect)
		} else if pair != "" {
			return host.Errorf(host.InvalidArgs, "--effect %q: expected TOOL=EFFECT, such as items.search=read; the tools of a "+
				"document have an effect each", manifest.CleanValue(pair))
		}
	}
	m, report, err := openapi.Derive(data, openapi.Options{Name: opts.Name, Server: opts.Server, Tags: opts.Tags,
		Auth: opts.Auth, Effects: effects, Plugins: command.PluginNames(app)})
	if err != nil {
		return err
	}
	if err := checkName(m.Name, step.OpPluginWrap, opts.Path, "--name"); err != nil {
		return err
	}
	written, err := manifest.Marshal(m)
	if err == nil {
		err = os.WriteFile(out, append(written, '\n'), 0o644)
	}
	if err != nil {
		return host.Errorf(host.Unavailable, "cannot write the manifest: %v", host.WithoutPath(err))
	}
	result := &documentData{Manifest: out, Plugin: m.Name, Report: &report,
		Rights: command.Map(m.Capabilities.Rights(), func(r manifest.Right) string { return r.Name })}
	return app.PrintNext(result, []string{"parley plugin install " + command.ShellQuote(out)},
		func(w io.Writer) { writeDocument(w, result) })
}

func writeDocument(w io.Writer, data *documentData) {
	r := data.Report
	fmt.Fprintf(w, "Wrote %s: %s with %s of %s\n", data.Manifest, data.Plugin, manifest.Plural(r.Tools, "tool"),
		manifest.Plural(r.Operations, "operation"))
	command.WriteLines(w, "  asks for ", data.Rights)
	for _, o := range r.LeftOut {
		fmt.Fprintf(w, "  left out: %s: %s\n", o.Operation, o.Reason)
	}
	write := func(names []string, about string) {
		shown := command.Map(names, func(s string) string { return manifest.Clip(manifest.CleanLine(s), 100) })
		command.PrintIf(w, len(shown) > 0, "  %s (%d):\n", about, len(shown))
		command.WriteListed(w, "    ", shown, "--json lists them all")
	}
	write(r.Renamed, "renamed, because another operation has the name")
	write(r.Unchecked, "checked by the API alone, because their schemas cannot be applied")
	write(r.Shortened, "with schemas that are cut, because of their size")
	write(r.Unsent, "security schemes that no call sends; --auth header:Cookie sends NAME=VALUE as a cookie")
	write(r.Sentences, "sentences left out, because they would mislead an agent")
}

// parseManifest reads a manifest, or derives one from a document for a comparison. A document that names no server
// gets an arbitrary one.
func parseManifest(app *command.App, word string, data []byte) (*manifest.Manifest, error) {
	var head struct{ OpenAPI, Swagger any } // encoding/json matches these names in any case
	if err := json.Unmarshal(data, &head); strings.HasSuffix(word, ".json") && (err != nil ||
		head.OpenAPI == nil && head.Swagger == nil) {
		m, err := manifest.Parse(data, parley.Version)
		if err != nil {
			return nil, &host.Error{Code: host.InvalidPlugin, Message: manifest.CleanLine(word) + ": " + err.Error(), Cause: err}
		}
		return m, nil
	}
	m, _, err := openapi.Derive(data, openapi.Options{Plugins: command.PluginNames(app)})
	if err != nil { // the document may name no server
		m, _, err = openapi.Derive(data, openapi.Options{Plugins: command.PluginNames(app), Server: "https://server.invalid"})
	}
	return m, err
}
