// Package slots limits how many calls of a kind run at the same time on this machine, over all processes of a user. A
// slot is a locked file, so the slots of a killed process are free at once. Waiting callers take turns, and so do
// processes; each in the order of arrival.
package slots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/parley-tools/parley/host/protect"
)

// ErrBusy means that no slot was free, or became free before the context ended.
var ErrBusy = errors.New("all slots are taken")

// pollEvery is how often the first in line checks whether another process has released a slot. A release in this
// process is noticed at once.
const pollEvery = 5 * time.Millisecond

// Pool has the slots of one folder. The zero value limits only this process.
type Pool struct {
	// Dir is the folder of the slots, one folder below it for each name. It is created with mode 0700. If it is empty,
	// or cannot be written, the slots are only for this process.
	Dir string

	mu    sync.Mutex
	lines map[string]*line
}

// line is the queue of this process for one name.
type line struct {
	dir string // "" if there are no files

	mu    sync.Mutex
	held  map[int]bool // numbers of the slots that this process holds
	queue Queue        // a release wakes the first turn
}

// Acquire takes one of limit slots of a name, such as a plugin's, for a caller. With wait, it waits until ctx ends if
// all are taken, or if others wait already. Without wait it takes a free slot even if others wait: a caller within
// something that holds a slot would otherwise wait for itself. The caller must call release; a second time it has no
// effect. The error is [ErrBusy].
func (p *Pool) Acquire(ctx context.Context, name, caller string, limit int, wait bool) (release func(), err error) {
	l := p.line(name)
	l.mu.Lock()
	if !wait || l.queue.Len() == 0 && !l.othersWait(uptime()) {
		if release, ok := l.take(limit); ok {
			l.mu.Unlock()
			return release, nil
		}
	}
	if !wait {
		l.mu.Unlock()
		return nil, ErrBusy
	}
	w := l.queue.Join(caller)
	l.mu.Unlock()
	defer l.leave(w)

	// The first turn of this process looks for a slot, and has a ticket that other processes see.
	select {
	case <-w.Woken:
	case <-ctx.Done():
		return nil, ErrBusy
	}
	arrival := uptime() // not before, so that processes take turns, too
	ticket := l.draw(arrival)
	defer ticket.discard()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		if !l.othersWait(arrival) {
			l.mu.Lock()
			release, ok := l.take(limit)
			l.mu.Unlock()
			if ok {
				return release, nil
			}
		}
		select {
		case <-w.Woken:
		case <-poll.C:
		case <-ctx.Done():
			return nil, ErrBusy
		}
	}
}

func (p *Pool) line(name string) *line {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.lines[name]; l != nil {
		return l
	}
	if p.lines == nil {
		p.lines = map[string]*line{}
	}
	l := &line{held: map[int]bool{}}
	if p.Dir != "" {
		dir := filepath.Join(p.Dir, name)
		if os.MkdirAll(dir, 0o700) == nil {
			l.dir = dir
		}
	}
	p.lines[name] = l
	return l
}

// take takes a free slot. The line is locked.
func (l *line) take(limit int) (release func(), ok bool) {
	for i := range limit {
		if l.held[i] {
			continue
		}
		unlock, ok := l.lock(fmt.Sprintf("slot-%d", i))
		if !ok {
			continue
		}
		l.held[i] = true
		return sync.OnceFunc(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			unlock()
			delete(l.held, i)
			l.queue.Wake()
		}), true
	}
	return nil, false
}

// lock locks a file of the folder. It always succeeds if there is no folder, or if the folder has become unusable,
// because a broken disk must not stop all calls.
func (l *line) lock(name string) (unlock func(), ok bool) {
	if l.dir == "" {
		return func() {}, true
	}
	f := protect.NewLock(filepath.Join(l.dir, name))
	locked, err := f.TryLock()
	if locked {
		return func() { _ = f.Close() }, true
	}
	_ = f.Close()
	return func() {}, err != nil
}

// leave removes a turn from the queue.
func (l *line) leave(t *Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.Leave(t)
}

// Prefixes of the names of tickets. A ticket is locked under a temporary name before it gets its final one.
const (
	ticketPrefix = "ticket-"
	drawnPrefix  = "drawn-"
)

// ticket is a locked file. Its name contains the arrival of a process's first turn.
type ticket struct {
	path   string
	unlock func()
}

// draw creates a ticket. Other processes see it only once it is locked, because an unlocked ticket counts as
// abandoned. A file that is not locked yet may be removed for that reason, so draw tries again with another name. If
// there is no ticket, because the folder has become unusable, other processes may come first.
func (l *line) draw(arrival time.Duration) *ticket {
	if l.dir == "" {
		return &ticket{}
	}
	id := fmt.Sprintf("%020d-%d", arrival, os.Getpid())
	path := filepath.Join(l.dir, ticketPrefix+id)
	for attempt := range drawAttempts {
		drawn := fmt.Sprintf("%s%s-%d", drawnPrefix, id, attempt)
		unlock, ok := l.lock(drawn)
		if !ok {
			continue
		}
		if os.Rename(filepath.Join(l.dir, drawn), path) == nil {
			return &ticket{path: path, unlock: unlock}
		}
		unlock()
	}
	return &ticket{}
}

// drawAttempts is far more than other processes can spoil, because they would have to open each file within the same
// few microseconds.
const drawAttempts = 100

func (t *ticket) discard() {
	if t.unlock != nil {
		_ = os.Remove(t.path)
		t.unlock()
	}
}

// othersWait reports whether a living process has drawn a ticket before arrival. It removes tickets of dead
// processes.
func (l *line) othersWait(arrival time.Duration) bool {
	if l.dir == "" {
		return false
	}
	entries, _ := os.ReadDir(l.dir)
	own := fmt.Sprintf("%s%020d-%d", ticketPrefix, arrival, os.Getpid())
	for _, e := range entries { // sorted by name
		name := e.Name()
		drawn := strings.HasPrefix(name, drawnPrefix)
		if !drawn && (!strings.HasPrefix(name, ticketPrefix) || name >= own) {
			continue
		}
		unlock, abandoned := l.lock(name)
		switch {
		case !abandoned && drawn:
			continue
		case !abandoned:
			return true
		}
		_ = os.Remove(filepath.Join(l.dir, name))
		unlock()
	}
	return false
}
