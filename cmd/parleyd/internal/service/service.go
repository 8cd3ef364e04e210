// Package service runs the service: it opens a host, serves it over HTTP, and answers signals.
package service

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/config"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/access"
	"github.com/parley-tools/parley/host/mcp/frame"
	"github.com/parley-tools/parley/manifest"
)

// Service is a host that is served.
type Service struct {
	path   string // of the configuration
	level  slog.LevelVar
	log    *slog.Logger
	parley *parley.Parley
	mcp    *mcp.Server
	loaded atomic.Pointer[loaded]
	ended  chan error // of listeners

	listeners []net.Listener
	servers   []*http.Server
}

// loaded is a configuration with the files that it names. A reload replaces it as a whole.
type loaded struct {
	*config.Config
	tokens *access.File
	routes http.Handler
}

// load reads the files of a configuration.
func load(cfg *config.Config, notice func(string)) (*loaded, error) {
	l := &loaded{Config: cfg, tokens: &access.File{Path: cfg.TokenFile, Notice: notice}}
	_, err := l.tokens.Tokens()
	return l, err
}

// open opens the host and listens. The service answers once [Service.Serve] runs.
func open(path string, log io.Writer) (*Service, error) {
	cfg, err := config.Read(path)
	if err != nil {
		return nil, err
	}
	s := &Service{path: path, ended: make(chan error, 8)}
	s.level.Set(cfg.Level)
	s.log = newLogger(log, cfg.Log.Format, &s.level)
	first, err := load(cfg, s.notice)
	if err != nil {
		return nil, err
	}
	s.parley, err = parley.Open(context.Background(), parley.Config{Notice: s.notice, Mode: cfg.Docs})
	if err != nil {
		return nil, err
	}
	if s.mcp, err = s.parley.MCP(mcp.Config{Mode: cfg.Docs}); err != nil {
		return nil, err
	}
	if err := s.use(first); err != nil {
		return nil, err
	}
	return s, s.listen()
}

func newLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// notice logs what a host has to say.
func (s *Service) notice(text string) { s.log.Info(manifest.CleanLine(text)) }

// use makes a configuration the one that requests are served by.
func (s *Service) use(l *loaded) error {
	handler, err := s.mcp.Handler("", mcp.HTTPConfig{Verify: l.tokens.Verify, Hosts: l.Hosts, Access: s.access})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	l.routes = mux
	s.loaded.Store(l)
	return nil
}

// ServeHTTP serves a request by the configuration of now.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.loaded.Load().routes.ServeHTTP(w, r)
}

// access logs a request.
func (s *Service) access(a mcp.Access) {
	s.log.Info("request", "from", a.From, "name", a.Name, "method", a.Method, "path", a.Path, "status", a.Status,
		"bytes", a.Bytes, "took", a.Took)
}

// listen opens the addresses of the configuration.
func (s *Service) listen() error {
	l := s.loaded.Load()
	for _, address := range l.Listen {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return host.Errorf(host.Unavailable, "cannot listen: %s", manifest.CleanLine(err.Error()))
		}
		s.listeners = append(s.listeners, listener)
	}
	return nil
}

// Serve serves until a signal ends the service, or a listener fails.
func (s *Service) Serve(signals <-chan os.Signal) error {
	for _, listener := range s.listeners {
		s.serve(listener, s, nil)
		s.log.Info("serving MCP", "address", listener.Addr().String())
	}
	var err error
	select {
	case err = <-s.ended:
	case <-signals:
	}
	return errors.Join(err, s.close())
}

// serve serves a handler at a listener.
func (s *Service) serve(listener net.Listener, handler http.Handler, encrypt *tls.Config) {
	server := frame.NewServer(handler, 0)
	s.servers = append(s.servers, server)
	go func() {
		err := server.Serve(frame.NewListener(listener, 0, encrypt))
		if !errors.Is(err, http.ErrServerClosed) {
			s.ended <- host.Errorf(host.Unavailable, "cannot serve: %v", err)
		}
	}()
}

// closeTime bounds how long the end of the service may take after its calls have ended.
const closeTime = 5 * time.Second

// close ends the calls under way and the host.
func (s *Service) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	s.mcp.Shutdown(ctx, host.Errorf(host.Terminated, "the service ends"))
	for _, server := range s.servers {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
	return s.parley.Close()
}
