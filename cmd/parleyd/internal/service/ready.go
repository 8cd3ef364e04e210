package service

import (
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
)

const (
	// readyTime bounds the checks of readiness.
	readyTime = 3 * time.Second
	// probeBytes is the number of bytes written to find out whether a disk is full.
	probeBytes = 64 << 10
)

// readyAge is how long the result of the checks is reused. A test shortens it.
var readyAge = time.Second

// check is one condition of readiness. The reason of a failure is only in the log: a response to strangers has only
// the check's name.
type check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

// readiness is the response of /readyz.
type readiness struct {
	Ready    bool     `json:"ready"`
	Checks   []check  `json:"checks"`
	Warnings []string `json:"warnings,omitempty"`
}

// prober runs the checks, one run at a time, however many requests there are.
type prober struct {
	mu      sync.Mutex
	running bool
	checks  []check
	at      time.Time
	done    chan struct{} // closed when the run ends
}

// statusRoutes adds the routes for monitoring to a mux. They answer any Host, without a token.
func (s *Service) statusRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]bool{"ok": true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := s.readiness()
		status := http.StatusOK
		if !r.Ready {
			status = http.StatusServiceUnavailable
		}
		writeJSON(w, status, r)
	})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// readiness returns whether the service can serve calls. It takes at most readyTime.
func (s *Service) readiness() readiness {
	p := &s.prober
	p.mu.Lock()
	if !p.running && time.Since(p.at) > readyAge {
		p.running, p.done = true, make(chan struct{})
		go func() {
			checks := s.checks()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.checks, p.at, p.running = checks, time.Now(), false
			close(p.done)
		}()
	}
	done := p.done
	p.mu.Unlock()
	r := readiness{Checks: []check{{"in time", false}}}
	select {
	case <-done:
		p.mu.Lock()
		r.Checks = p.checks
		p.mu.Unlock()
	case <-time.After(readyTime):
	}
	r.Checks = append([]check{{"not draining", !s.draining.Load()}}, r.Checks...)
	r.Ready = true
	for _, c := range r.Checks {
		r.Ready = r.Ready && c.OK
	}
	if warning := s.loaded.Load().certificateWarning(); warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
	return r
}

// checks runs the conditions of readiness. The condition for compiling plugins is that their cache can be written.
func (s *Service) checks() (checks []check) {
	dirs := s.parley.Dirs()
	for _, c := range []struct {
		name  string
		check func() error
	}{
		{"policy", s.checkPolicy},
		{"store", func() error { _, err := s.parley.Store().List(); return err }},
		{"plugins", func() error { _, err := s.parley.Catalog(); return err }},
		{"compiler cache", func() error { return checkWritable(dirs.Cache) }},
		{"records", func() error {
			if err := protect.CheckRecord(s.parley.AuditLog().Path()); err != nil {
				return err
			}
			return checkWritable(s.parley.AuditLog().Dir(), s.parley.TraceDir())
		}},
	} {
		err := c.check()
		if err != nil {
			s.log.Error("not ready", "check", c.name, "error", err)
		}
		checks = append(checks, check{c.name, err == nil})
	}
	return checks
}

// checkPolicy reads the policy again if it has changed.
func (s *Service) checkPolicy() error {
	rules, err := s.parley.Policy()
	if err == nil {
		_, err = rules.Audit()
	}
	return err
}

// checkWritable writes a file into each folder and removes it. It creates missing folders.
func checkWritable(folders ...string) error {
	for _, folder := range folders {
		if err := protect.Dir(folder); err != nil {
			return err
		}
		f, err := os.CreateTemp(folder, ".ready-*")
		if err != nil {
			return err
		}
		_, err = f.Write(make([]byte, probeBytes))
		_ = f.Close()
		_ = os.Remove(f.Name())
		if err != nil {
			return host.Errorf(host.Unavailable, "%s cannot be written: %v", folder, err)
		}
	}
	return nil
}
