// Package page is the built-in plugin of verbs on pages: its manifest, and the part of its calls that needs the host.
// The verbs themselves run in the keeper, which a call reaches in one trip.
package page

import (
	"context"
	"embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/internal/words"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// Name is the plugin's name.
const Name = "page"

const (
	version = "0.2.0"
	brief   = "Look at web pages, click, fill and check, in few tokens"
)

//go:generate go test -run TestSegment -update .

var (
	//go:embed manifest.json
	manifestJSON []byte
	//go:embed peers.json
	peersJSON []byte
	//go:embed tools
	toolFiles embed.FS

	// A test compares the segment with what buildSegment returns.
	//
	//go:embed segment
	shippedSegment []byte
)

// tools are the verbs, the most common ones first.
var tools = words.New(toolFiles, "tools", "open", "do", "go", "tabs", "snapshot", "text", "find", "get", "click",
	"fill", "type", "press", "select", "check", "hover", "drag", "scroll", "wait", "expect", "screenshot", "evaluate",
	"requests", "console", "dialog", "upload", "downloads", "cookies", "storage", "state", "route", "emulate", "vitals",
	"record", "compare")

// Provider is the plugin. It is safe for concurrent use.
type Provider struct {
	chrome   *cdp.Provider
	manifest func() *manifest.Manifest
}

var _ host.Provider = (*Provider)(nil)

// New returns the plugin, which acts in the browsers of chrome.
func New(chrome *cdp.Provider) *Provider {
	p := &Provider{chrome: chrome}
	p.manifest = sync.OnceValue(func() *manifest.Manifest {
		m := words.Manifest(manifestJSON, p.Info())
		m.Peers = peersJSON
		return m
	})
	return p
}

// Info returns the plugin's name and version and the number of its tools.
func (p *Provider) Info() host.Info {
	return host.Info{Name: Name, Version: version, Kind: manifest.KindBuiltin, Brief: brief, Tools: len(tools.Names())}
}

// Manifest describes the plugin without its tools.
func (p *Provider) Manifest() (*manifest.Manifest, error) { return p.manifest(), nil }

// Groups returns no groups.
func (p *Provider) Groups() ([]host.GroupLine, error) { return nil, nil }

// Lines returns the tools if group is empty.
func (p *Provider) Lines(group string) ([]host.Line, error) {
	return host.LinesOf(&manifest.Manifest{Tools: tools.All()}, group), nil
}

// Names returns the names of all tools, sorted.
func (p *Provider) Names() ([]string, error) {
	return slices.Sorted(slices.Values(tools.Names())), nil
}

// Tool returns a tool by its name without regard to case, nil if there is none.
func (p *Provider) Tool(name string) (*manifest.Tool, error) {
	return tools.Tool(strings.ToLower(name)), nil
}

// Segment returns the search index over the tools.
func (p *Provider) Segment() ([]byte, error) {
	if segment.Check(shippedSegment) != nil { // it was generated for another version of the index
		return p.buildSegment(), nil
	}
	return shippedSegment, nil
}

func (p *Provider) buildSegment() []byte {
	return segment.Build(segment.PluginOf(p.manifest()), searchDocs())
}

func searchDocs() (docs []segment.Doc) {
	for _, t := range tools.All() {
		docs = append(docs, segment.DocOf(&t))
	}
	return docs
}

// Features returns what the plugin can do beyond listing and running tools.
func (p *Provider) Features() host.Features {
	return host.Features{SearchDocs: searchDocs, MissingPage: p.missingPage, NeedsConfirmation: p.needsConfirmation,
		Effect: effectOf, Includes: includedIn}
}

// missingPage returns the step that opens a page if the tool of a job requires one and the caller's session has none.
func (p *Provider) missingPage(ctx context.Context, j *job.Job) *step.Step {
	page := *j
	page.Tool = ""
	if tools.Verb(j.Tool).Pageless || p.chrome.MissingPage(ctx, &page) == nil {
		return nil
	}
	return &openStep
}

// needsConfirmation returns the reason to ask a person about a state that another session has saved; see
// [cdp.Provider.NeedsConfirmation].
func (p *Provider) needsConfirmation(j *job.Job) string {
	var q stateParams
	if j.Tool != "state" || json.Unmarshal(j.Params, &q) != nil {
		return ""
	}
	own := *j
	own.Params, _ = manifest.Marshal(q)
	return p.chrome.NeedsConfirmation(&own)
}
