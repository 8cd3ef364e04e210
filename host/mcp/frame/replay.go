package frame

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxReplayStreams and maxReplayBytes bound what is kept of a session, maxReplayTotal what is kept of all sessions.
	maxReplayStreams = 16
	maxReplayBytes   = 256 << 10
	maxReplayTotal   = 64 << 20
)

// Replay keeps the last events of each session, so that a client whose connection was lost can request those that it
// has not received. The store of the SDK would keep an entry for each request until its session ends. The zero value is
// empty. It is safe for concurrent use.
type Replay struct {
	mu       sync.Mutex
	sessions map[string][]*events
	size     int // bytes of all events
}

// events are the last events of a stream.
type events struct {
	stream string
	first  int // index of data[0]
	data   [][]byte
}

var _ sdk.EventStore = (*Replay)(nil)

// Open implements [sdk.EventStore].
func (r *Replay) Open(_ context.Context, session, stream string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions == nil {
		r.sessions = map[string][]*events{}
	}
	r.sessions[session] = append(r.sessions[session], &events{stream: stream})
	r.drop(session)
	return nil
}

// Append implements [sdk.EventStore].
func (r *Replay) Append(_ context.Context, session, stream string, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.find(session, stream); e != nil {
		e.data = append(e.data, data)
		r.size += len(data)
		r.drop(session)
	}
	return nil
}

// drop drops the oldest events of a session until they are within the bounds.
func (r *Replay) drop(session string) {
	of, size := r.sessions[session], 0
	for i, e := range slices.Backward(of) {
		for _, data := range e.data {
			size += len(data)
		}
		for len(e.data) > 0 && (size > maxReplayBytes || r.size > maxReplayTotal || i > 0 && i <= len(of)-maxReplayStreams) {
			size, r.size = size-len(e.data[0]), r.size-len(e.data[0])
			e.data, e.first = e.data[1:], e.first+1
		}
	}
	if len(of) > maxReplayStreams { // of[0] lasts as long as the session
		r.sessions[session] = slices.Delete(of, 1, len(of)-maxReplayStreams+1)
	}
}

// After implements [sdk.EventStore].
func (r *Replay) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.find(session, stream)
	if e == nil || index+1 < e.first {
		return func(yield func([]byte, error) bool) { yield(nil, errors.New("the events are no longer stored")) }
	}
	left := slices.Clone(e.data[min(index+1-e.first, len(e.data)):])
	return func(yield func([]byte, error) bool) {
		for _, data := range left {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed implements [sdk.EventStore].
func (r *Replay) SessionClosed(_ context.Context, session string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.sessions[session] {
		for _, data := range e.data {
			r.size -= len(data)
		}
	}
	delete(r.sessions, session)
	return nil
}

// find returns the events of a stream, or nil.
func (r *Replay) find(session, stream string) *events {
	of := r.sessions[session]
	if i := slices.IndexFunc(of, func(e *events) bool { return e.stream == stream }); i >= 0 {
		return of[i]
	}
	return nil
}
