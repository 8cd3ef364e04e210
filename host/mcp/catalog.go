package mcp

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
)

// refreshInterval is how often a server looks for changes of the catalog while a client listens for them.
const refreshInterval = time.Second

// lists are what a mode lists of one catalog.
type lists struct {
	tools     []listedTool             // sorted by name, without those that the SDK lists
	resources map[string]*sdk.Resource // by URI
	digests   map[string]string        // of the plugins that these resources describe
	prompts   map[string]*sdk.Prompt   // by name
}

// listedTool is a tool of the catalog as tools/list shows it. The SDK does not know it, because it would decode and
// encode its schema again and again: a call by its name becomes one of call_tool.
type listedTool struct {
	name      string // in tools/list
	qualified string // "" if the catalog finds it by its name in tools/list
	json      []byte
}

// refresh brings the lists of every mode up to date with the plugins that are installed.
func (s *Server) refresh() {
	s.cfg.Host.Refresh()
	s.mu.Lock()
	modes := slices.Collect(maps.Values(s.modes))
	s.mu.Unlock()
	for _, m := range modes {
		// A plugin that cannot be read is listed without its tools. It is not worth the rest of the lists.
		_ = m.update()
	}
}

// watch refreshes again and again until stop is called, for a client that listens for changes. All clients share one
// goroutine.
func (s *Server) watch() (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers++; s.watchers == 1 {
		ctx, cancel := context.WithCancel(s.closing)
		s.stopWatching = cancel
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
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.watchers--; s.watchers == 0 {
			s.stopWatching()
		}
	})
}

// update makes the lists those of the host's catalog, if it was swapped. The SDK notifies the clients of each list that
// changes. The error says which plugins cannot be read.
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
	m.updateResources(next)
	m.updatePrompts(next)
	last := m.lists.Swap(next)
	if m.catalog.Swap(catalog) != nil && !reflect.DeepEqual(last.tools, next.tools) {
		m.addMetaTools() // the SDK notifies clients when a tool is added
	}
	return err
}

func (m *modeServer) updateResources(next *lists) {
	last := m.lists.Load()
	if removed := missing(last.resources, next.resources); len(removed) > 0 {
		m.server.RemoveResources(removed...)
	}
	for _, uri := range slices.Sorted(maps.Keys(next.resources)) {
		r := next.resources[uri]
		old := last.resources[uri]
		if old == nil || !reflect.DeepEqual(old, r) {
			m.server.AddResource(r, m.read)
		}
		if old != nil && last.digests[uri] != next.digests[uri] {
			_ = m.server.ResourceUpdated(m.of.closing, &sdk.ResourceUpdatedNotificationParams{URI: uri})
		}
	}
}

func (m *modeServer) updatePrompts(next *lists) {
	last := m.lists.Load()
	if removed := missing(last.prompts, next.prompts); len(removed) > 0 {
		m.server.RemovePrompts(removed...)
	}
	for _, name := range slices.Sorted(maps.Keys(next.prompts)) {
		if last.prompts[name] == nil {
			m.server.AddPrompt(next.prompts[name], m.learn)
		}
	}
}

// missing returns the keys of one map that another does not have.
func missing[V any](from, in map[string]V) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(from)), func(k string) bool {
		_, has := in[k]
		return has
	})
}

// listsOf returns what the mode lists of a catalog. The error joins those of the plugins that cannot be read; what
// could be read is listed all the same.
func (m *modeServer) listsOf(catalog *host.Catalog) (*lists, error) {
	l := &lists{
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
