package mcp

import (
	"bytes"
	"net"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/frame"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// SetRefreshInterval sets how often the server looks for changes of the catalog. Call it before clients connect.
func (s *Server) SetRefreshInterval(d time.Duration) { s.refreshInterval = d }

// SetLostAfter sets how long a client whose stream broke off, and one without a stream, may take to send another
// request.
func (s *Server) SetLostAfter(streamed, silent time.Duration) {
	s.connections.mu.Lock()
	defer s.connections.mu.Unlock()
	s.connections.lostAfter, s.connections.silentAfter = streamed, silent
}

// SetShutdownGrace sets how long the server waits for a client when it shuts down.
func (s *Server) SetShutdownGrace(d time.Duration) { s.shutdownGrace = d }

// Slots returns the semaphore of the calls, requests, "large calls" or "large bodies" in progress.
func (s *Server) Slots(of string) chan struct{} {
	return map[string]chan struct{}{"calls": s.calls, "requests": s.requests, "large calls": s.largeCalls,
		"large bodies": s.largeBodies}[of]
}

// SetUnsentBytes sets the number of response bytes that clients have not read.
func (s *Server) SetUnsentBytes(n int64) { s.unsentBytes.Store(n) }

// UnsentBytes returns the number of response bytes that clients have not read.
func (s *Server) UnsentBytes() int64 { return s.unsentBytes.Load() }

// BoundListener limits the connections of a listener.
func BoundListener(l net.Listener, most, perClient int) net.Listener {
	return frame.BoundListener(l, most, perClient)
}

// NameHash is the name of the session that some words identify.
func NameHash(words ...string) string { return nameHash(words...) }

// Extend passes the SDK's server of a mode to a test, which adds what plugins cannot have.
func (s *Server) Extend(mode string) (*Extension, error) {
	m, err := s.modeServer(mode)
	return &Extension{m}, err
}

// Next renders a step as clients get it, or returns "" if it is omitted.
func (s *Server) Next(step step.Step) (string, error) {
	m, err := s.modeServer(s.cfg.Mode)
	if err != nil {
		return "", err
	}
	call, ok := m.out.step(step)
	if !ok {
		return "", nil
	}
	raw, err := manifest.Marshal(call)
	return string(raw), err
}

// Extension adds tools and resources to a server that are not from plugins.
type Extension struct{ modeServer *modeServer }

// Server is the SDK's server.
func (e *Extension) Server() *sdk.Server { return e.modeServer.server }

// AddTool adds a tool that is not from a plugin.
func (e *Extension) AddTool(t *sdk.Tool, run sdk.ToolHandler) {
	if e.modeServer.native == nil {
		e.modeServer.native = map[string]bool{}
	}
	e.modeServer.native[t.Name] = true
	e.modeServer.server.AddTool(t, run)
}

// AddResource adds a resource that is not from a plugin.
func (e *Extension) AddResource(r *sdk.Resource, read sdk.ResourceHandler) {
	e.modeServer.lists.Load().resources[r.URI] = r
	e.modeServer.server.AddResource(r, read)
}

// What listed_test.go, which opens a whole host, tests.
var (
	PrepareTools  = prepareTools
	PreparedTools = preparedTools
	ListedKey     = listedKey
	ListedTools   = listedTools
)

// prepareTools returns the tools of a provider for listedTools: a line for each, with its name, a tab and the JSON.
func prepareTools(p host.Provider) ([]byte, error) {
	l := &listing{}
	catalog, err := host.NewCatalog(p)
	if err == nil {
		err = l.addTools(catalog, p)
	}
	var b bytes.Buffer
	for _, t := range l.tools {
		b.WriteString(t.name + "\t")
		b.Write(t.json)
		b.WriteByte('\n')
	}
	return b.Bytes(), err
}
