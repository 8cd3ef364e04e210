package slots

import "time"

// Waiting returns how many wait in this process.
func (p *Pool) Waiting(name string) int {
	l := p.line(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue.waiting)
}

// Draws draws a ticket, and reports whether it got one. It discards it.
func (p *Pool) Draws(name string) bool {
	t := p.line(name).draw(time.Hour)
	defer t.discard()
	return t.path != ""
}

// Sweep removes what is left behind.
func (p *Pool) Sweep(name string) { p.line(name).othersWait(0) }
