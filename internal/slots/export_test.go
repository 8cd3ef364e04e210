package slots

// Waiting returns how many wait in this process.
func (p *Pool) Waiting(name string) int {
	l := p.line(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
