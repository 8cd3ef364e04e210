package frame

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
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
	sessions map[string]*replayed
	size     int // bytes of all events
}

// replayed is what is kept of a session.
type replayed struct {
	streams []*events // the first one lasts as long as the session, the others are of its last requests
	size    int       // bytes of their events
}

// events are the last events of a stream.
type events struct {
	stream string
	first  int // index of data[0]
	data   [][]byte
	on     *sending // the request that it is sent on, or was
}

// sending is a request of a user whose response a stream is sent on.
type sending struct {
	user  string
	end   context.CancelFunc
	ended chan struct{}
}

// sendingKey is the key of the sending in a request's context.
type sendingKey struct{}

// Take prepares a request of a session, and returns it with a function to call when it has been served. A request that
// reads a stream ends the one that it is still sent on: the client has lost that connection, and this side does not
// know. One user cannot end the requests of another.
func (r *Replay) Take(q *http.Request, user string) (*http.Request, func()) {
	ctx, end := context.WithCancel(q.Context())
	on, ended := &sending{user, end, make(chan struct{})}, (<-chan struct{})(nil)
	if q.Method == http.MethodGet {
		stream, _, _ := strings.Cut(q.Header.Get("Last-Event-ID"), "_") // as the SDK names events; "" is the session's
		r.mu.Lock()
		if _, e := r.find(q.Header.Get("Mcp-Session-Id"), stream); e != nil && (e.on == nil || e.on.user == user) {
			if e.on != nil {
				e.on.end()
				ended = e.on.ended
			}
			e.on = on
		}
		r.mu.Unlock()
	}
	if ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	return q.WithContext(context.WithValue(ctx, sendingKey{}, on)), func() {
		end()
		close(on.ended)
	}
}

var _ sdk.EventStore = (*Replay)(nil)

// Open implements [sdk.EventStore].
func (r *Replay) Open(ctx context.Context, session, stream string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions == nil {
		r.sessions = map[string]*replayed{}
	}
	of := cmp.Or(r.sessions[session], &replayed{})
	r.sessions[session] = of
	on, _ := ctx.Value(sendingKey{}).(*sending)
	if of.streams = append(of.streams, &events{stream: stream, on: on}); len(of.streams) > maxReplayStreams {
		r.drop(of, of.streams[1], func() bool { return true })
		of.streams = slices.Delete(of.streams, 1, 2)
	}
	return nil
}

// Append implements [sdk.EventStore].
func (r *Replay) Append(_ context.Context, session, stream string, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	of, e := r.find(session, stream)
	if e == nil {
		return nil
	}
	e.data = append(e.data, data)
	of.size, r.size = of.size+len(data), r.size+len(data)
	for _, oldest := range of.streams {
		r.drop(of, oldest, func() bool { return of.size > maxReplayBytes || r.size > maxReplayTotal })
	}
	return nil
}

// drop drops the oldest events of a stream while there are too many.
func (r *Replay) drop(of *replayed, e *events, tooMany func() bool) {
	for len(e.data) > 0 && tooMany() {
		n := len(e.data[0])
		of.size, r.size, e.data[0] = of.size-n, r.size-n, nil
		e.data, e.first = e.data[1:], e.first+1
	}
}

// After implements [sdk.EventStore].
func (r *Replay) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, e := r.find(session, stream)
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
	if of := r.sessions[session]; of != nil {
		r.size -= of.size
		delete(r.sessions, session)
	}
	return nil
}

// find returns what is kept of a session, and the events of a stream of it, or nil.
func (r *Replay) find(session, stream string) (*replayed, *events) {
	of := r.sessions[session]
	if of == nil {
		return nil, nil
	}
	if i := slices.IndexFunc(of.streams, func(e *events) bool { return e.stream == stream }); i >= 0 {
		return of, of.streams[i]
	}
	return of, nil
}
