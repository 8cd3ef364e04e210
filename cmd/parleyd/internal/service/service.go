// Package service runs the service: it opens a host, serves it over HTTP, and answers signals.
package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parleyd/internal/config"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/catalog"
	"github.com/parley-tools/parley/cmd/parleyd/internal/oauth"
	"github.com/parley-tools/parley/cmd/parleyd/internal/systemd"
	"github.com/parley-tools/parley/cmd/parleyd/internal/telemetry"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp"
	"github.com/parley-tools/parley/host/mcp/access"
	"github.com/parley-tools/parley/host/mcp/frame"
	"github.com/parley-tools/parley/manifest"
)

// Service serves a host.
type Service struct {
	path    string // path of the configuration
	manager systemd.Manager
	level   slog.LevelVar
	log     *slog.Logger

	telemetry *telemetry.Telemetry
	front     *fleet.Front    // nil without a fleet
	published *catalog.Mirror // set if front is

	stopRecords context.CancelFunc // set if front is

	parley   *parley.Parley
	mcp      *mcp.Server
	loaded   atomic.Pointer[loaded]
	prober   prober
	draining atomic.Bool
	failed   chan error    // errors of listeners
	leaving  chan struct{} // closed when calls no longer wait for people

	sockets, status []net.Listener
	passed          bool // systemd passed them, and keeps them for the next process
	servers         []*http.Server
}

// open opens the host and the listeners. The service answers once [Service.Serve] runs.
func open(path string, log io.Writer) (*Service, error) {
	cfg, err := config.Read(path)
	if err != nil {
		return nil, err
	}
	s := &Service{path: path, manager: systemd.Find(), failed: make(chan error, 1),
		leaving: make(chan struct{})}
	s.level.Set(cfg.Level)
	options := &slog.HandlerOptions{Level: &s.level}
	s.log = slog.New(slog.NewTextHandler(log, options))
	if cfg.Log.Format == "json" {
		s.log = slog.New(slog.NewJSONHandler(log, options))
	}
	first, err := load(cfg, nil, s.notice, s.changed)
	if err != nil {
		return nil, err
	}
	observe := cfg.Telemetry
	observe.Version, observe.Log = parley.Version, s.log
	if s.telemetry, err = telemetry.Start(context.Background(), observe); err != nil {
		return nil, err
	}
	opened := parley.Config{Notice: s.notice, Mode: cfg.Docs, ConfirmWait: cfg.ConfirmTime, Tracer: s.telemetry}
	if cfg.Fleet.URL != "" {
		if s.front, err = cfg.Fleet.Front(s.log); err != nil {
			return nil, err
		}
		s.published = catalog.NewMirror(func(format string, args ...any) { s.notice(fmt.Sprintf(format, args...)) })
		if key := cfg.Fleet.Policy; key != "" {
			if err := s.published.SharePolicy(s.front.Conn(), key, parley.FindDirs("", os.Getenv).Config); err != nil {
				return nil, err
			}
		}
		opened.Fleet = parley.Fleet{Away: s.front, Published: s.published.Providers}
	}
	if s.parley, err = parley.Open(context.Background(), opened); err != nil {
		return nil, err
	}
	parley.Approvals(s.parley).Closing = s.leaving
	if s.front != nil {
		if err := s.copyRecords(cfg.Fleet); err != nil {
			return nil, err
		}
	}
	if err := s.remember(cfg); err != nil {
		return nil, err
	}
	if s.mcp, err = s.parley.MCP(mcp.Config{Mode: cfg.Docs}); err != nil {
		return nil, err
	}
	s.telemetry.Observe(s.parley, s.mcp)
	first.stamps = s.stamps(cfg)
	if err := s.use(first); err != nil {
		return nil, err
	}
	return s, s.listen(cfg)
}

// notice logs a notice of the host.
func (s *Service) notice(text string) { s.log.Info(manifest.CleanLine(text)) }

// remember protects the files of a configuration from plugins, in all processes.
func (s *Service) remember(cfg *config.Config) error {
	for _, path := range append(cfg.Files(), s.path) {
		if err := s.parley.ProtectedFiles().Remember(path); err != nil {
			return err
		}
	}
	return nil
}

// use makes a configuration the one for serving requests.
func (s *Service) use(l *loaded) error {
	mux := http.NewServeMux()
	served := mcp.HTTPConfig{Hosts: l.Hosts, Access: s.telemetry.Access}
	served.Verify = func(ctx context.Context, text string) (access.Token, error) {
		token, err := s.loaded.Load().verify(ctx, text) // not l: a stream outlives a reload
		if err != nil {
			s.log.Debug("a token is refused", "error", err)
		}
		return token, err
	}
	if l.oauth != nil {
		url, metadata := l.OAuth.Metadata()
		served.Metadata = url
		mux.Handle(oauth.MetadataPath, metadata)
		mux.Handle(oauth.MetadataPath+mcp.Path, metadata)
	}
	handler, err := s.mcp.Handler("", served)
	if err != nil {
		return err
	}
	for _, route := range []string{mcp.Path, mcp.Path + "/{mode}", "/"} { // the routes name the spans
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = clientAddress(r, l.Proxies)
			handler.ServeHTTP(w, r)
		})
	}
	if l.StatusListen == "" {
		s.statusRoutes(mux)
		mux.Handle("GET /metrics", served.Guard(s.telemetry.Metrics()))
	}
	l.routes = mux
	s.level.Set(l.Level)
	s.loaded.Store(l)
	s.warn()
	return nil
}

// warn logs what an operator has to do soon.
func (s *Service) warn() {
	if warning := s.loaded.Load().certificateWarning(); warning != "" {
		s.log.Warn(warning)
	}
}

// statusSocket is the name of a systemd socket for monitoring. All other sockets are for MCP.
const statusSocket = "status"

// listen takes the sockets of systemd, or opens the addresses of a configuration.
func (s *Service) listen(cfg *config.Config) error {
	sockets, err := s.manager.Sockets()
	if err != nil {
		return host.Errorf(host.ConfigError, "%v", err)
	}
	for name, listeners := range sockets {
		for _, listener := range listeners {
			if address := listener.Addr().String(); name != statusSocket && !cfg.MayServe(address) {
				return host.Errorf(host.ConfigError, "the socket %s of systemd: expected tls.cert and tls.key, an address on "+
					"loopback, or plain_http with the reason why nobody can read along", address)
			}
		}
		if name == statusSocket {
			s.status = listeners
		} else {
			s.sockets, s.passed = append(s.sockets, listeners...), true
		}
	}
	listen := func(to *[]net.Listener, addresses ...string) {
		for _, address := range addresses {
			listener, failed := net.Listen("tcp", address)
			if err = cmp.Or(err, failed); failed == nil {
				*to = append(*to, listener)
			}
		}
	}
	if !s.passed {
		listen(&s.sockets, cfg.Listen...)
	}
	if cfg.StatusListen != "" && len(s.status) == 0 {
		listen(&s.status, cfg.StatusListen)
	}
	if err != nil {
		return host.Errorf(host.Unavailable, "cannot listen: %s", manifest.CleanLine(err.Error()))
	}
	return nil
}

// Serve serves until a signal ends the service, or a listener fails.
func (s *Service) Serve(signals <-chan os.Signal) error {
	if s.front != nil {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		go s.published.Run(ctx, s.front.Conn(), s.parley)
	}
	cfg := s.loaded.Load()
	var encrypt *tls.Config
	if cfg.certificate != nil {
		encrypt = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.loaded.Load().certificate.Current()
		}}
	}
	perClient := frame.MaxConnections / 4
	if len(cfg.Proxies) > 0 {
		perClient = 0 // all connections may come from one proxy
	}
	routes := func(w http.ResponseWriter, r *http.Request) { s.loaded.Load().routes.ServeHTTP(w, r) }
	for _, listener := range s.sockets {
		s.serve(frame.NewListener(listener, perClient, encrypt), s.telemetry.Handler(http.HandlerFunc(routes)))
		s.log.Info("serving MCP", "address", listener.Addr().String(), "tls", encrypt != nil)
	}
	status := http.NewServeMux()
	s.statusRoutes(status)
	status.Handle("/metrics", s.telemetry.Metrics())
	for _, listener := range s.status {
		s.serve(frame.NewListener(listener, 0, nil), status)
		s.log.Info("serving status", "address", listener.Addr().String())
	}
	s.manager.Notify("READY=1", "STATUS=serving MCP")
	return s.answer(signals)
}

// serve serves a handler at a listener.
func (s *Service) serve(listener net.Listener, handler http.Handler) {
	server := frame.NewServer(handler, 0)
	s.servers = append(s.servers, server)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) && !s.draining.Load() {
			s.failed <- host.Errorf(host.Unavailable, "cannot serve: %v", err)
		}
	}()
}

// warnEvery is the time between repeated warnings to an operator.
const warnEvery = 24 * time.Hour

// answer answers signals until one ends the service.
func (s *Service) answer(signals <-chan os.Signal) error {
	alive := make(<-chan time.Time)
	if s.manager.Watchdog > 0 {
		alive = time.Tick(s.manager.Watchdog / 2)
	}
	warn := time.Tick(warnEvery)
	for {
		select {
		case <-alive:
			s.manager.Notify("WATCHDOG=1")
		case <-warn:
			s.warn()
		case err := <-s.failed:
			return errors.Join(err, s.close(context.Background()))
		case signal := <-signals:
			if signal != syscall.SIGHUP {
				return s.drain(signals)
			}
			s.manager.Reloading()
			s.reload()
			s.manager.Notify("READY=1")
		}
	}
}

// drain waits until the calls in flight have ended, at most for the drain time, and then ends the service. A second
// signal ends it at once.
func (s *Service) drain(signals <-chan os.Signal) error {
	s.draining.Store(true)
	close(s.leaving)
	limit := s.loaded.Load().DrainTime
	s.log.Info("draining", "limit", limit)
	s.manager.Notify("STOPPING=1", "STATUS=draining",
		fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (limit+2*closeTime).Microseconds()))
	if s.passed {
		for _, listener := range s.sockets {
			_ = listener.Close() // further connections wait for the next process
		}
	}
	hurry, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for signal := range signals {
			if signal != syscall.SIGHUP {
				cancel()
			}
		}
	}()
	ctx, stop := context.WithTimeout(hurry, limit)
	defer stop()
	linger := time.After(lingerTime)
	s.mcp.Drain(ctx)
	select {
	case <-linger:
	case <-ctx.Done():
	}
	return s.close(hurry)
}

// lingerTime is the minimum time for which a service still answers before it closes connections. The next answer
// tells a client with an open connection that the connection ends. Otherwise the client might find it closed while it
// sends a request.
const lingerTime = time.Second

// closeTime bounds how long the end of the service may take after its calls have ended.
const closeTime = 5 * time.Second

// close ends the calls under way and the host.
func (s *Service) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	s.draining.Store(true)
	s.mcp.Shutdown(ctx, host.Errorf(host.Terminated, "the service ends"))
	for _, server := range s.servers {
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}
	if s.telemetry.Shutdown(ctx) != nil {
		s.log.Warn("some spans were not exported")
	}
	if s.front != nil {
		s.stopRecords()
		s.front.Close()
	}
	s.log.Info("ended")
	return s.parley.Close()
}
