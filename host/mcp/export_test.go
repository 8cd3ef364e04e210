package mcp

import (
	"net"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// SetRefreshInterval sets how often the server looks for changes of the catalog. Call it before clients connect.
func (s *Server) SetRefreshInterval(d time.Duration) { s.refreshInterval = d }

// SetClock sets the clock by which confirmations expire. Call it before clients connect.
func (s *Server) SetClock(now func() time.Time) { s.now = now }

// SetShutdownGrace sets how long the server waits for a client when it shuts down.
func (s *Server) SetShutdownGrace(d time.Duration) { s.shutdownGrace = d }

// Slots returns what bounds the calls, requests, "large calls" or "large bodies" under way.
func (s *Server) Slots(of string) chan struct{} {
	return map[string]chan struct{}{"calls": s.calls, "requests": s.requests, "large calls": s.largeCalls,
		"large bodies": s.largeBodies}[of]
}

// SetUnsentBytes sets how many bytes of responses clients have yet to read.
func (s *Server) SetUnsentBytes(n int64) { s.unsentBytes.Store(n) }

// UnsentBytes returns how many bytes of responses clients have yet to read.
func (s *Server) UnsentBytes() int64 { return s.unsentBytes.Load() }

// BoundListener bounds the connections of a listener.
func BoundListener(l net.Listener, most int) net.Listener {
	return &boundedListener{Listener: l, slots: make(chan struct{}, most)}
}

// SessionHash is the name of a session that some words identify.
func SessionHash(words ...string) string { return sessionHash(words...) }

// Extend gives a test the SDK's server of a mode, to add what no plugin can give.
func (s *Server) Extend(mode string) (*Extension, error) {
	m, err := s.modeServer(mode)
	return &Extension{m}, err
}

// Next renders a step as a client is told it; "" where it is left out.
func (s *Server) Next(step host.Step) (string, error) {
	m, err := s.modeServer(Minimal)
	if err != nil {
		return "", err
	}
	call, ok := m.renderStep(step)
	if !ok {
		return "", nil
	}
	raw, err := manifest.Marshal(call)
	return string(raw), err
}

// Extension adds to a server beside its plugins.
type Extension struct{ modeServer *modeServer }

// Server is the SDK's server.
func (e *Extension) Server() *sdk.Server { return e.modeServer.server }

// AddTool adds a tool that is no plugin's.
func (e *Extension) AddTool(t *sdk.Tool, run sdk.ToolHandler) {
	e.modeServer.lists.Load().tools[t.Name] = &listedTool{t.Name, t}
	e.modeServer.server.AddTool(t, run)
}

// AddResource adds a resource that is no plugin's.
func (e *Extension) AddResource(r *sdk.Resource, read sdk.ResourceHandler) {
	e.modeServer.lists.Load().resources[r.URI] = r
	e.modeServer.server.AddResource(r, read)
}
