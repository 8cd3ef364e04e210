package call

import (
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// repeats are the calls that a plugin makes on its own behalf within one call. Those that do the same again, such as
// the polls of a wait, are recorded once, before the record of that call: the first of them, with how many there were
// and how long all took together.
type repeats struct {
	mu     sync.Mutex
	events []*host.Event
	first  map[string]*host.Event // by what a call does, and also by its outcome
}

// Limits of what is held back until the call ends: the number of different calls, and the bytes of each.
const maxRepeats, maxRepeatBytes = 100, 16 << 10

// begun reports whether the end of a call that does the same is held back, so that its beginning is recorded.
func (r *repeats) begun(key string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first[key] != nil
}

// hold holds the event of a call back, or adds it to that of one that did the same. It reports whether it did.
func (r *repeats) hold(key string, e host.Event) bool {
	if r == nil || e.Question != "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	outcome := key + " " + e.Subject + " " + string(host.OK)
	if e.Err != nil {
		outcome = key + " " + e.Subject + " " + string(e.Err.Code)
	}
	if first := r.first[outcome]; first != nil {
		first.Count, first.Duration = max(first.Count, 1)+1, first.Duration+e.Duration
		return true
	}
	if r.first[key] == nil && (len(r.events) >= maxRepeats || len(e.Params)+len(e.Result) > maxRepeatBytes) {
		return false
	}
	if r.first == nil {
		r.first = map[string]*host.Event{}
	}
	r.events, r.first[outcome], r.first[key] = append(r.events, &e), &e, &e
	return true
}

// record records what is held back.
func (r *repeats) record(h *Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		h.record(*e)
	}
	r.events, r.first = nil, nil
}

// repeatKey returns what a call does. For one that only reads, numbers do not count, such as the time that is left.
func (r *run) repeatKey() string {
	if r.address.Tool == nil {
		return r.answer.Tool
	}
	params := r.call.Params
	if r.auth.effect() == manifest.EffectRead {
		params = withoutNumbers(params)
	}
	return strings.Join([]string{r.answer.Tool, r.call.Options.Browser, r.call.Options.Target, string(params)}, " ")
}

// withoutNumbers returns a JSON text without the digits of its numbers.
func withoutNumbers(text []byte) []byte {
	out, quoted := make([]byte, 0, len(text)), false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c >= '0' && c <= '9':
			continue
		}
		out = append(out, text[i])
	}
	return out
}
