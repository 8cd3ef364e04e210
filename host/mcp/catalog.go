package mcp

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/envelope"
)

// refreshInterval is how often a server looks for changes of the catalog while a client listens for them.
const refreshInterval = time.Second

// listing is what a mode lists of one catalog.
type listing struct {
	tools     []listedTool             // sorted by name, without those that the SDK lists
	resources map[string]*sdk.Resource // by URI
	digests   map[string]string        // digests of the plugins that these resources describe, by URI
	prompts   map[string]*sdk.Prompt   // by name
}

// listedTool is a tool of the catalog as tools/list shows it. The SDK does not know it, because it would decode and
// encode its schema again and again: a call by its name becomes a call of call_tool.
type listedTool struct {
	name string // in tools/list
	json []byte
}

// refresh brings the lists of every mode up to date with the plugins that are installed.
func (s *Server) refresh() {
	s.cfg.Host.Refresh()
	s.mu.Lock()
	modes := slices.Collect(maps.Values(s.modes))
	s.mu.Unlock()
	for _, m := range modes {
		// A plugin that cannot be read is listed without its tools, and the rest of the lists is served.
		_ = m.update()
	}
}

// watch refreshes at intervals until stop is called, for a client that listens for changes.
func (s *Server) watch() (stop func()) {
	ctx, stop := context.WithCancel(s.closing)
	go func() {
		ticker := time.NewTicker(s.refreshInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				s.refresh()
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

// update makes new lists if the host's catalog was swapped. The SDK notifies the clients of each list that changes.
// The error says which plugins cannot be read.
func (m *modeServer) update() error {
	if m.catalog.Load() == m.host.Catalog() {
		return nil
	}
	m.updating.Lock()
	defer m.updating.Unlock()
	catalog := m.host.Catalog()
	if m.catalog.Load() == catalog {
		return nil
	}
	next, err := m.listsOf(catalog)
	last := m.lists.Load()
	pass(last.resources, next.resources, m.server.RemoveResources,
		func(r *sdk.Resource) { m.server.AddResource(r, m.read) })
	for uri, digest := range next.digests {
		if last.resources[uri] != nil && last.digests[uri] != digest {
			_ = m.server.ResourceUpdated(m.of.closing, &sdk.ResourceUpdatedNotificationParams{URI: uri})
		}
	}
	pass(last.prompts, next.prompts, m.server.RemovePrompts, func(p *sdk.Prompt) { m.server.AddPrompt(p, m.learn) })
	m.lists.Store(next)
	if m.catalog.Swap(catalog) != nil && !reflect.DeepEqual(last.tools, next.tools) {
		m.addMetaTools() // the SDK notifies clients when a tool is added
	}
	return err
}

// pass tells the SDK which items of a list are gone, new or changed.
func pass[V any](last, next map[string]*V, remove func(...string), add func(*V)) {
	gone := slices.DeleteFunc(slices.Sorted(maps.Keys(last)), func(key string) bool { return next[key] != nil })
	if len(gone) > 0 {
		remove(gone...)
	}
	for _, key := range slices.Sorted(maps.Keys(next)) {
		if !reflect.DeepEqual(last[key], next[key]) {
			add(next[key])
		}
	}
}

// listsOf returns what the mode lists of a catalog. The error joins the errors of the plugins that cannot be read;
// everything else is listed all the same.
func (m *modeServer) listsOf(catalog *host.Catalog) (*listing, error) {
	l := &listing{
		resources: map[string]*sdk.Resource{},
		digests:   map[string]string{}, prompts: map[string]*sdk.Prompt{},
	}
	var faults []error
	switch m.mode {
	case Progressive:
		pinned := m.of.cfg.Pinned
		if len(pinned) == 0 {
			pinned = defaultPinned
		}
		l.addPinned(pinnedTools(catalog, pinned))
	case Full:
		faults = append(faults, l.addAll(catalog))
	}
	slices.SortFunc(l.tools, compareTools)
	for _, p := range catalog.Providers() {
		l.addResource(p.Info())
		faults = append(faults, l.addPrompt(p))
	}
	return l, errors.Join(faults...)
}

// listedTools are the tools of cdp and of the shipped plugins as full mode lists them. A test generates them. A line
// "= KEY" precedes the tools of each provider. Making them takes ten times as long as everything else that a server
// does until it has sent its list.
//
//go:generate go test -run TestListedTools -update .
//go:embed listed.txt
var listedTools []byte

// listedKey is the key of a provider: the digest of its build, or its name and version if it is part of the binary.
func listedKey(of host.Provider) string {
	info := of.Info()
	return cmp.Or(info.Digest, info.Name+" "+info.Version)
}

// preparedTools returns the lines of a provider in listedTools, nil if it is not there.
func preparedTools(of host.Provider) []byte {
	if of.Features().Overlaid {
		return nil
	}
	_, rest, found := bytes.Cut(listedTools, []byte("= "+listedKey(of)+"\n"))
	if !found {
		return nil
	}
	if end := bytes.Index(rest, []byte("\n= ")); end >= 0 {
		rest = rest[:end+1]
	}
	return rest
}

// CommonTools returns the names in tools/list of the tools that progressive mode lists without configuration.
func CommonTools() []string {
	names := make([]string, len(defaultPinned))
	for i, name := range defaultPinned {
		names[i] = envelope.ListedName(name)
	}
	return names
}

// defaultPinned are the tools that progressive mode lists without configuration: the shipped verbs that agents use
// most. Those that are not installed are left out.
var defaultPinned = []string{
	"page.open", "page.snapshot", "page.text", "page.find", "page.click", "page.fill", "page.press", "page.do",
	"page.wait", "page.screenshot", "page.evaluate", "page.requests", "page.console",
}
