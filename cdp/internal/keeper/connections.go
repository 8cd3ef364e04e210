package keeper

import (
	"sync"
	"time"
)

// connections knows which callers' connections, such as those of MCP clients, are still there. Each is held by the
// keeper's client that serves it, which is one process, and ends a grace after that has released it or has gone.
type connections struct {
	grace time.Duration
	end   func(id string)

	mu   sync.Mutex
	byID map[string]*heldConnection
}

type heldConnection struct {
	holders map[*client]bool
	ending  *time.Timer // nil while it is held
}

func newConnections(grace time.Duration, end func(id string)) *connections {
	return &connections{grace: grace, end: end, byID: map[string]*heldConnection{}}
}

// hold notes that a client serves a connection.
func (cs *connections) hold(id string, c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	h := cs.byID[id]
	if h == nil {
		h = &heldConnection{holders: map[*client]bool{}}
		cs.byID[id] = h
	}
	h.holders[c] = true
	if h.ending != nil {
		h.ending.Stop()
		h.ending = nil
	}
}

// release notes that a client no longer serves a connection.
func (cs *connections) release(id string, c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.releaseLocked(id, c)
}

// releaseAll releases all connections of a client that has gone.
func (cs *connections) releaseAll(c *client) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for id := range cs.byID {
		cs.releaseLocked(id, c)
	}
}

func (cs *connections) releaseLocked(id string, c *client) {
	h := cs.byID[id]
	if h == nil || !h.holders[c] {
		return
	}
	delete(h.holders, c)
	if len(h.holders) > 0 {
		return
	}
	h.ending = time.AfterFunc(cs.grace, func() {
		cs.mu.Lock()
		over := cs.byID[id] == h && h.ending != nil
		if over {
			delete(cs.byID, id)
		}
		cs.mu.Unlock()
		if over {
			cs.end(id)
		}
	})
}
