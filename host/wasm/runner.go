package wasm

import (
	"errors"
	"time"

	"github.com/parley-tools/parley/manifest"
)

const (
	maxRunners     = 8
	runnerIdle     = time.Minute
	maxRunnerAge   = 10 * time.Minute
	maxRunnerCalls = 1000
)

// errNoRunner means that there is no runner: a shared one, so that the call gets one for it alone, or any, because the
// compiled code is in no folder.
var errNoRunner = errors.New("no runner")

// RunnerInfo is a shared runner: a process that runs the guests of one plugin for one caller and session.
type RunnerInfo struct {
	Name    string    `json:"name"`
	PID     int       `json:"pid"` // 0 if it has ended
	Plugin  string    `json:"plugin"`
	Caller  string    `json:"caller"`
	Session string    `json:"session,omitempty"`
	Started time.Time `json:"started"`
	Used    time.Time `json:"used"` // when its last call ended
	Busy    bool      `json:"busy"`
}

// identity returns what tells one build of the plugin from all others.
func (p *Provider) identity(m *manifest.Manifest) string {
	p.identityOnce.Do(func() {
		if p.identified = p.info.Name + " " + p.info.Digest; p.info.Digest == "" {
			p.identified = cacheKey("manifest", marshal(m))
		}
	})
	return p.identified
}
