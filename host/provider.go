// Package host defines what the parts of a host share: providers of tools and the catalog of all of them, calls and
// answers, errors, and the interfaces between the parts. The packages below it that it imports have the words of which
// these consist: who asks, rights, next steps. Package call runs the calls.
package host

import (
	"cmp"
	"context"
	"slices"

	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// SessionEnder is a [Provider] that holds something open for sessions, such as pages of a browser.
type SessionEnder interface {
	// EndSession closes what a session has opened, and what plugins have opened on its behalf.
	EndSession(ctx context.Context, of caller.Session) error
	// EndConnection is called with [caller.Session.Connection] when a connection has ended. It does not wait.
	EndConnection(id string)
}

// Provider is one plugin of a catalog, such as CDP or a wasm plugin.
//
// All methods but Invoke are discovery: they must not start an engine, a browser or a network connection, and must
// build only what they return. All methods must be safe for concurrent use. Tool names are local here
// ("Network.getCookies", "hash"); only the catalog has qualified names.
type Provider interface {
	// Info returns what lists of plugins show. It must be cheap: it is called for every plugin at every start.
	Info() Info
	// Manifest returns the manifest of the plugin. Its Tools may be empty; use Tool instead.
	Manifest() (*manifest.Manifest, error)
	// Lines returns one line for each tool of a group in listing order; "" means the tools without a group.
	Lines(group string) ([]Line, error)
	// Groups returns the groups with their counts, in listing order.
	Groups() ([]GroupLine, error)
	// Names returns the names of all tools, sorted.
	Names() ([]string, error)
	// Tool returns one tool in full, or nil if there is none. Case is ignored.
	Tool(name string) (*manifest.Tool, error)
	// Segment returns the search segment of the plugin; see [segment.Build].
	Segment() ([]byte, error)
	// Features returns what else the provider can do. It must be cheap.
	Features() Features
	// Invoke runs a call that has been validated and allowed. It must return soon after ctx ends. Errors are [*Error];
	// any other error is reported as internal.
	Invoke(ctx context.Context, r *Request) (*job.Result, error)
}

// Info is a plugin in a list of plugins.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Kind    string `json:"kind"` // manifest.KindParley, KindWASI, KindExtism or KindBuiltin
	Brief   string `json:"brief"`
	Groups  int    `json:"groups"`
	Tools   int    `json:"tools"`
	Digest  string `json:"-"` // "sha256:…" of the wasm file and the manifest; "" if the plugin is built in
	// Owner is who the name belongs to: OwnerShipped, OwnerUnsigned, or the public key of the signer. "" means
	// OwnerUnsigned, or OwnerShipped if the plugin is built in.
	Owner string `json:"-"`
	// ReplacedOwner is the [Info.Identity] of the plugin that had the name before, if it had another owner; else "".
	ReplacedOwner string `json:"-"`
}

// Build identifies the build of the plugin: by its digest, or by its version if it is built in.
func (i Info) Build() string { return cmp.Or(i.Digest, i.Version) }

// Owners of names that are not the public keys of signers.
const (
	OwnerShipped  = "shipped"
	OwnerUnsigned = "unsigned"
)

// Unsigned reports whether the plugin is neither shipped nor signed.
func (i Info) Unsigned() bool {
	return i.Owner == OwnerUnsigned || i.Owner == "" && i.Kind != manifest.KindBuiltin
}

// Identity is what a grant of the plugin's tools is bound to: the owner, or the digest of an unsigned plugin.
func (i Info) Identity() string {
	switch {
	case i.Owner == "" && i.Kind == manifest.KindBuiltin:
		return OwnerShipped
	case i.Owner == "" || i.Owner == OwnerUnsigned:
		return i.Digest
	}
	return i.Owner
}

// Line is a tool in a list: tier 1 of its documentation. Name is local in a provider and qualified in a response.
type Line struct {
	Name         string `json:"name"`
	Signature    string `json:"signature"`
	Brief        string `json:"brief"`
	Effect       string `json:"effect"`
	Deprecated   bool   `json:"deprecated,omitempty"`
	Experimental bool   `json:"experimental,omitempty"`
}

// GroupLine is a group in a list.
type GroupLine struct {
	Name   string `json:"name"`
	Brief  string `json:"brief"`
	Tools  int    `json:"tools"`
	Events int    `json:"events"`
}

// EventLine is an event in a group's list.
type EventLine struct {
	Name  string `json:"name"`
	Brief string `json:"brief"`
}

// Features are what some providers can do beyond [Provider]. A function that is nil is a feature that the provider
// does not have. Like the methods of Provider, all but Prepare are discovery.
type Features struct {
	// Events returns the events of a group in listing order.
	Events func(group string) ([]EventLine, error)
	// Entry returns an event or a type, which cannot be called, by its local name, or nil if there is none. Its Params are
	// its properties.
	Entry func(name string) (*Entry, error)
	// Coverage reports how much of a protocol the provider covers, for lists in JSON.
	Coverage func() (any, error)
	// Describe builds the documentation of a tool. Without it, [manifest.Describe] does.
	Describe func(t *manifest.Tool, tier int) *manifest.ToolDocs
	// MissingPage returns the step that opens a page if a tool requires one and the caller's session has none, or nil if
	// nothing is missing. It starts nothing. Of the job only Tool, Caller, Session and Options are set; without Tool it
	// stands for a call of any tool that acts on a page.
	MissingPage func(ctx context.Context, j *job.Job) *step.Step
	// Flow returns what comes before a tool; nil leaves that to the manifest. Without Flow, [manifest.FlowOf] applies.
	Flow func(tool string) *manifest.Flow
	// NeedsConfirmation returns why a person must confirm a call that the policy allows, or "" if that is not necessary.
	// Of the job only Tool, Params, Caller and Session are set. It is not asked about calls of the command line, neither
	// direct ones nor those by way of a shipped plugin.
	NeedsConfirmation func(j *job.Job) string
	// Pass returns a tool for a name that the provider's data does not have, for calls with Options.SendAnyway, or nil if
	// no tool can have the name.
	Pass func(name string) *manifest.Tool
	// Effect returns the effect of a call, which may be less than its tool's. The job has only Tool, Params and Caller.
	Effect func(j *job.Job) string
	// Includes returns the qualified names of tools of other plugins that do a part of what a call does. A rule that
	// denies one of them by its name also denies the call. Of the job the same fields are set as for Effect.
	Includes func(j *job.Job) []string
	// Whole returns the manifest with all its tools. Providers have it if [Provider.Manifest] may leave tools out.
	Whole func() (*manifest.Manifest, error)
	// Script returns the text of a script for pages that the plugin ships. Its manifest declares the digest.
	Script func(name string) ([]byte, error)
	// segment.DocsOf returns what search indexes of the provider's tools, events and types. Without it, search indexes the
	// [segment.DocsOf] of the manifest.
	SearchDocs func() []segment.Doc
	// Overlaid reports that the documentation has edits of the operator, so nothing prepared for the build is valid.
	Overlaid bool
	// Prepare does what the first call requires, such as compiling. Only a timeout that was given with the call bounds
	// it. If ctx ends first, it returns at once with an error that says so, and the preparation goes on for later calls.
	Prepare func(ctx context.Context, r *Request) error
}

// Entry documents an event or a type in the form of a tool.
type Entry struct {
	Kind string // "event" or "type"
	Tool manifest.Tool
}

// WholeManifest returns the manifest of a plugin with all its tools, unless the plugin is built in.
func WholeManifest(p Provider) (*manifest.Manifest, error) {
	if whole := p.Features().Whole; whole != nil {
		return whole()
	}
	return p.Manifest()
}

// GroupsOf returns the groups of a manifest in its order, for Provider.Groups.
func GroupsOf(m *manifest.Manifest) []GroupLine {
	counts := map[string]int{}
	for i := range m.Tools {
		counts[m.Tools[i].Group]++
	}
	lines := []GroupLine{}
	for _, g := range m.Groups {
		lines = append(lines, GroupLine{Name: g.Name, Brief: manifest.CleanLine(g.Docs.Brief), Tools: counts[g.Name]})
	}
	return lines
}

// LinesOf returns the tools of a group of a manifest in its order, for Provider.Lines. "" selects tools without a
// group.
func LinesOf(m *manifest.Manifest, group string) []Line {
	lines := []Line{}
	for i := range m.Tools {
		t := &m.Tools[i]
		if t.Group != group {
			continue
		}
		lines = append(lines, Line{
			Name: t.Name, Signature: manifest.Signature(manifest.LocalName(t.Name), manifest.Params(t.Params)),
			Brief:  manifest.CleanLine(t.Docs.Brief),
			Effect: t.Effect, Deprecated: t.Deprecated != nil, Experimental: t.Experimental,
		})
	}
	return lines
}

// NamesOf returns the names of all tools of a manifest, sorted, for Provider.Names.
func NamesOf(m *manifest.Manifest) []string {
	names := make([]string, len(m.Tools))
	for i := range m.Tools {
		names[i] = m.Tools[i].Name
	}
	slices.Sort(names)
	return names
}
