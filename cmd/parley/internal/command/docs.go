package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/docs"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/manifest"
)

// DocsAuditOptions are the options of an audit of documentation.
type DocsAuditOptions struct {
	Mode  string   // "" means all modes of MCP
	Names []string // plugins, groups or tools whose tools are listed one by one; none means only sums
}

// DocsAudit measures what documentation costs in tokens.
func DocsAudit(ctx context.Context, d *Deps, o DocsAuditOptions) (*docs.Audit, error) {
	if o.Mode != "" && !slices.Contains(mcp.Modes(), o.Mode) {
		return nil, UnknownValue("mode", o.Mode, mcp.Modes()).WithNext("parley docs audit --mode " + mcp.Minimal)
	}
	source, closeSource, err := d.docsSource(ctx)
	if err != nil {
		return nil, err
	}
	defer closeSource()
	return source.Audit(ctx, o.Mode, o.Names)
}

// DocsCoverage measures which share of the catalog is documented.
func DocsCoverage(d *Deps) (*docs.Coverage, error) {
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	return docs.Cover(catalog)
}

// DocsExportOptions are the options of an export of documentation.
type DocsExportOptions struct {
	Format string   // one of [docs.Formats]
	Names  []string // plugins, groups or tools; none means everything
	Out    string   // the folder that takes the files; "" means that the data has their content
}

// DocsExportData is an export.
type DocsExportData struct {
	Format string         `json:"format"`
	Tools  int            `json:"tools"`
	Files  []ExportedFile `json:"files"`
	// Warnings say what the system that reads the format will refuse.
	Warnings []string `json:"-"`
}

// ExportedFile is a file of an export: one that was written, with its size, or one with its content.
type ExportedFile struct {
	Path    string          `json:"path"`
	Content json.RawMessage `json:"content,omitempty"` // a JSON document, or a text as a string
	Bytes   int             `json:"bytes,omitempty"`
	Raw     []byte          `json:"-"` // what the file contains
}

// DocsExport converts documentation to a format of other systems, and writes the files with o.Out.
func DocsExport(ctx context.Context, d *Deps, o DocsExportOptions) (*DocsExportData, error) {
	if o.Format == "" {
		return nil, host.Errorf(host.InvalidArgs, "parley docs export requires --format, one of %s",
			strings.Join(docs.Formats(), ", ")).WithNext("parley docs export --format mcp")
	}
	if !slices.Contains(docs.Formats(), o.Format) {
		return nil, UnknownValue("format", o.Format, docs.Formats()).WithNext("parley docs export --format mcp")
	}
	source, closeSource, err := d.docsSource(ctx)
	if err != nil {
		return nil, err
	}
	defer closeSource()
	export, err := source.Export(ctx, o.Format, o.Names)
	if err != nil {
		return nil, err
	}
	data := &DocsExportData{Format: o.Format, Tools: export.Tools, Warnings: export.Warnings}
	for _, f := range export.Files {
		file := ExportedFile{Path: f.Path, Raw: f.Content}
		switch {
		case o.Out != "":
			file.Path, file.Bytes = filepath.Join(o.Out, filepath.FromSlash(f.Path)), len(f.Content)
			if err := writeBelow(file.Path, f.Content); err != nil {
				return nil, host.Errorf(host.Unavailable, "cannot write %s: %s", file.Path, manifest.CleanLine(err.Error())).
					WithNext("--out with a folder that you can write to")
			}
		case f.JSON:
			file.Content = f.Content
		default:
			if file.Content, err = manifest.Marshal(string(f.Content)); err != nil {
				return nil, err
			}
		}
		data.Files = append(data.Files, file)
	}
	return data, nil
}

// writeBelow writes a file and creates its folders.
func writeBelow(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return writeFile(path, content)
}

// docsSource returns the catalog behind an MCP server of its own, which records nothing: looking documentation up to
// measure it is not a use of it. The function closes the source.
func (d *Deps) docsSource(ctx context.Context) (*docs.Source, func(), error) {
	s, err := d.Settings()
	if err != nil {
		return nil, nil, err
	}
	h, err := d.Host(ctx)
	if err != nil {
		return nil, nil, err
	}
	quiet, err := host.New(host.Config{Version: parley.Version, Catalog: h.Catalog(), Policy: host.DenyAll{}})
	if err != nil {
		return nil, nil, err
	}
	pinned, err := d.pinned(ctx)
	if err != nil {
		return nil, nil, err
	}
	server, err := mcp.New(mcp.Config{Host: quiet, Version: parley.Version, Mode: s.DocMode, Pinned: pinned})
	if err != nil {
		return nil, nil, err
	}
	clients := map[string]*mcp.Client{}
	request := func(ctx context.Context, mode, method string, params any) (json.RawMessage, error) {
		if clients[mode] == nil {
			c, err := server.Dial(ctx, mode)
			if err != nil {
				return nil, err
			}
			clients[mode] = c
		}
		return clients[mode].Request(ctx, method, params)
	}
	source := &docs.Source{
		Host: quiet, Modes: mcp.Modes(), Full: mcp.Full, Request: request, ListedName: mcp.ListedName, Command: d.Command,
		Instructions: server.Instructions(), Common: mcp.CommonTools(),
	}
	return source, func() {
		for _, c := range clients {
			c.Close()
		}
	}, nil
}
