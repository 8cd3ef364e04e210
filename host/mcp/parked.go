package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
)

// In revisions without sessions, a question is the result of a request. A call that has run nothing yet ends with
// it and is made again. A plugin's call cannot be: what it has called already would be called twice. It is parked
// instead: it keeps its memory and waits for the request that carries the reply.

const (
	// parkTime is how long a parked call waits for the reply to its question.
	parkTime = 10 * time.Minute
	// maxParked bounds the parked calls of a server.
	maxParked = 16
	// parkedPrefix begins the state of a question of a parked call.
	parkedPrefix = "parked."
)

// waitingCall is a call that may have to be parked.
type waitingCall struct {
	binding   string // identifies the call that a reply is valid for
	cancel    context.CancelCauseFunc
	questions chan halfwayQuestion
	done      chan *host.Answer // holds one
	// ended must be called once the answer has been used.
	ended func()
}

// halfwayQuestion is a question that a plugin's call puts half-way.
type halfwayQuestion struct {
	params *sdk.ElicitParams
	reply  chan<- host.Approval
}

// parkedCall is a call that waits for the reply to a question.
type parkedCall struct {
	*waitingCall
	reply chan<- host.Approval
}

// parking holds the parked calls of a server. It is safe for concurrent use.
type parking struct {
	closing context.Context // done when the server shuts down

	mu     sync.Mutex
	parked map[string]*parkedCall // by the states of their questions
}

// start begins a call. One that can be parked runs beside its request, and goes on when that has its result.
func (m *modeServer) start(ctx context.Context, a *asker, call host.Call, ended func()) *waitingCall {
	w := &waitingCall{binding: a.callBinding(call.Name, call.Params), done: make(chan *host.Answer, 1), ended: ended}
	if a.asksByRetry() {
		w.questions = make(chan halfwayQuestion)
		a.questions = w.questions
		ctx = context.WithoutCancel(ctx)
	}
	ctx, w.cancel = context.WithCancelCause(ctx)
	run := func() {
		defer w.cancel(nil)
		defer context.AfterFunc(m.of.closing, func() { w.cancel(context.Cause(m.of.closing)) })()
		answer, _ := m.host.Call(context.WithValue(ctx, askerKey{}, a), call)
		w.done <- answer
	}
	if a.asksByRetry() {
		go func() {
			growStack(false)
			run()
		}()
	} else {
		run()
	}
	return w
}

// await returns the answer of a call, or the question that parked it. The call ends if ctx does.
func (s *parking) await(ctx context.Context, w *waitingCall) (*host.Answer, *inputRequired) {
	select {
	case answer := <-w.done:
		return answer, nil
	case q := <-w.questions:
		return nil, &inputRequired{q.params, s.park(&parkedCall{w, q.reply})}
	case <-ctx.Done():
		w.cancel(context.Cause(ctx))
		return <-w.done, nil
	}
}

// park keeps a call until its reply comes, and returns the state that the client sends along with it.
func (s *parking) park(p *parkedCall) (state string) {
	state = parkedPrefix + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked[state] = p
	abandon := func(cause error) {
		if s.takeParked(state) != nil {
			p.cancel(cause)
			<-p.done
			p.ended()
		}
	}
	context.AfterFunc(s.closing, func() { abandon(context.Cause(s.closing)) })
	time.AfterFunc(parkTime, func() { abandon(host.NoApproverError(fmt.Sprintf("nobody replied within %s", parkTime))) })
	return state
}

// takeParked removes a parked call and returns it; nil if it is not there.
func (s *parking) takeParked(state string) *parkedCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parked[state]
	delete(s.parked, state)
	return p
}

// resume goes on with the parked call that a request carries a reply for. The result is nil if the request is not about
// one. A reply is valid once, for the client, the session and the call that it belongs to.
func (s *parking) resume(a *asker, name string, params []byte) (w *waitingCall, err error) {
	state := a.request.Params.RequestState
	if !strings.HasPrefix(state, parkedPrefix) {
		return nil, nil
	}
	reply, ok := a.request.Params.InputResponses[confirmID].(*sdk.ElicitResult)
	s.mu.Lock()
	p := s.parked[state]
	s.mu.Unlock()
	if !ok || p == nil || p.binding != a.callBinding(name, params) || s.takeParked(state) == nil {
		return nil, errWrongState
	}
	p.reply <- approval(reply)
	return p.waitingCall, nil
}

// callBinding identifies a call of this client in its session.
func (a *asker) callBinding(name string, params []byte) string {
	var compact bytes.Buffer
	if json.Compact(&compact, params) == nil {
		params = compact.Bytes()
	}
	return nameHash("parked", a.caller.Name, a.caller.Session.Key(), name, string(params))
}

// askHalfway puts the question of a plugin's call, which is parked until the reply comes.
func (a *asker) askHalfway(ctx context.Context, q *host.Question) (host.Approval, error) {
	a.server.parking.mu.Lock()
	full := len(a.server.parking.parked) >= maxParked
	a.server.parking.mu.Unlock()
	if full {
		return host.Approval{}, host.NoApproverError(fmt.Sprintf("%d calls wait for replies already", maxParked))
	}
	reply := make(chan host.Approval, 1)
	select {
	case a.questions <- halfwayQuestion{elicitParams(q), reply}:
	case <-ctx.Done():
		return host.Approval{}, context.Cause(ctx)
	}
	select {
	case answer := <-reply:
		return answer, nil
	case <-ctx.Done():
		return host.Approval{}, context.Cause(ctx)
	}
}
