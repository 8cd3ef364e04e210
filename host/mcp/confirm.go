package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/approval"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/host/mcp/frame"
	"github.com/parley-tools/parley/manifest"
)

const (
	// confirmTimeout is how long a client is asked in a revision with sessions.
	confirmTimeout = 5 * time.Minute
	// confirmID names the one question of a call.
	confirmID                   = "confirm"
	maxQuestion, maxShownParams = 600, 300
)

// askerKey is the key of the asker in a call's context.
type askerKey struct{}

// asker asks the person at the client of one call.
type asker struct {
	server  *Server
	request *sdk.CallToolRequest
	caller  caller.Principal
	// questions receives the questions that a plugin's call asks half-way; see [waitingCall].
	questions chan<- halfwayQuestion
}

// Approver asks the person at the client of a call over MCP whether to go on. It does not ask about rights, which only
// the operator can grant, nor about calls that do not come over MCP.
type Approver struct{}

// Patience returns how long calls over MCP wait for an approval: the given time, which is below the clients' own
// limits. A parked call keeps no client waiting, so it may wait as long as it can be parked.
func Patience(wait time.Duration) func(context.Context, *approval.Approval) time.Duration {
	return func(ctx context.Context, q *approval.Approval) time.Duration {
		if a, ok := ctx.Value(askerKey{}).(*asker); ok && wait > 0 && q.Within != "" && a.asksByRetry() {
			return max(wait, parkTime)
		}
		return wait
	}
}

// Approve implements [approval.Approver].
func (Approver) Approve(ctx context.Context, q *approval.Approval) (approval.Reply, error) {
	a, ok := ctx.Value(askerKey{}).(*asker)
	if !ok || !approval.Kinds[q.Kind].ByClient {
		return approval.Reply{}, approval.NoApproverError("there is nobody to ask")
	}
	if !a.canAsk() {
		return approval.Reply{}, approval.NoApproverError("this client cannot ask (it has no elicitation)")
	}
	if a.asksByRetry() {
		if q.Within != "" {
			return a.askHalfway(ctx, q)
		}
		return a.confirmByRetry(q)
	}
	return a.elicit(ctx, q)
}

// canAsk reports whether the client can ask a person.
func (a *asker) canAsk() bool {
	c := a.request.ClientCapabilities()
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// asksByRetry reports whether the client can ask, and sends the reply with a second request: from the first revision
// without sessions on, a question is the result of a call.
func (a *asker) asksByRetry() bool {
	return a.canAsk() && frame.IsStateless(a.request)
}

// elicit asks with a request to the client, as revisions with sessions do.
func (a *asker) elicit(ctx context.Context, q *approval.Approval) (approval.Reply, error) {
	hungUp, stored := hungUp(ctx), ctx // stored ends once the reply is stored
	ctx, cancel := context.WithTimeoutCause(ctx, confirmTimeout,
		approval.NoApproverError(fmt.Sprintf("nobody replied within %s", confirmTimeout)))
	defer cancel()
	defer context.AfterFunc(hungUp, cancel)()
	if _, isAsked := a.server.asked.LoadOrStore(q.ID, true); isAsked { // by the same call, made again
		<-ctx.Done()
		return approval.Reply{}, context.Cause(ctx)
	}
	reply, err := a.request.Session.Elicit(ctx, elicitParams(q))
	keep := confirmTimeout // a call that read the approval before the reply was stored must not ask again
	if err != nil {
		keep = 0
	}
	context.AfterFunc(stored, func() { time.AfterFunc(keep, func() { a.server.asked.Delete(q.ID) }) })
	switch {
	case hungUp.Err() != nil:
		return approval.Reply{}, approval.NoApproverError("the client disconnected")
	case err != nil && ctx.Err() != nil:
		return approval.Reply{}, context.Cause(ctx)
	case err != nil:
		return approval.Reply{}, approval.NoApproverError("the client failed to ask: " + manifest.CleanLine(err.Error()))
	}
	return replyOf(reply), nil
}

// replyOf returns what a client's reply means. Only "accept" is yes.
func replyOf(r *sdk.ElicitResult) approval.Reply {
	reply := approval.Reply{Answer: approval.Deny, By: approval.ByMCP}
	if r.Action == "accept" {
		reply.Answer = approval.Once
	}
	return reply
}

// inputRequired is the error of a call that returns a question to the client and has run nothing.
type inputRequired struct {
	params *sdk.ElicitParams
	state  string
}

func (q *inputRequired) Error() string { return q.params.Message }

func (q *inputRequired) result() *sdk.CallToolResult {
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{confirmID: q.params}, RequestState: q.state}
}

// errWrongState is the error of a call that carries a reply with a state that was not issued for it.
var errWrongState = errors.New("the reply belongs to another call, has expired or was used before")

// confirmByRetry returns the reply that the client has sent along with the call, or else a question for it as an error.
// The state of the question is the id of its approval, so that a reply is valid once, for the very call that was asked
// about; the protocol requires an error of its own for a reply with another state.
func (a *asker) confirmByRetry(q *approval.Approval) (approval.Reply, error) {
	if q.Expires.IsZero() {
		return approval.Reply{}, approval.NoApproverError("this host keeps no approvals")
	}
	if reply, ok := a.request.Params.InputResponses[confirmID].(*sdk.ElicitResult); ok {
		if a.request.Params.RequestState != q.ID {
			return approval.Reply{}, &host.Error{Code: host.Denied, Message: errWrongState.Error(), Cause: errWrongState}
		}
		return replyOf(reply), nil
	}
	return approval.Reply{}, &host.Error{
		Code: host.Denied, Cause: &inputRequired{elicitParams(q), q.ID}, Approval: q.ID,
		Message: fmt.Sprintf("%s must be confirmed: the client was asked; nothing was run yet", q.Tool),
	}
}

func elicitParams(q *approval.Approval) *sdk.ElicitParams {
	message := fmt.Sprintf("%s wants to call %s %s (%s). Go on?", q.Principal, q.Tool, q.ShortParams(maxShownParams),
		q.Reason)
	if q.Within != "" {
		message = "Within a call that is under way, " + message
	}
	return &sdk.ElicitParams{
		Mode: "form", Message: manifest.Clip(manifest.CleanLine(message), maxQuestion),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}
}

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
	done      chan *host.Answer // buffers one answer
	// ended must be called once the answer has been used.
	ended func()
}

// halfwayQuestion is a question that a plugin's call asks half-way.
type halfwayQuestion struct {
	params *sdk.ElicitParams
	reply  chan<- approval.Reply
}

// parkedCall is a call that waits for the reply to a question.
type parkedCall struct {
	*waitingCall
	reply chan<- approval.Reply
}

// parking holds the parked calls of a server. It is safe for concurrent use.
type parking struct {
	closing context.Context // done when the server shuts down

	mu     sync.Mutex
	parked map[string]*parkedCall // by the states of their questions
}

// start begins a call. A call that can be parked runs beside its request, and goes on after the request has a result.
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
	time.AfterFunc(parkTime, func() {
		abandon(approval.NoApproverError(fmt.Sprintf("nobody replied within %s", parkTime)))
	})
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

// resume continues the parked call that a request carries a reply for. It returns nil if the request carries none. A
// reply is valid once, for the client, the session and the call that it belongs to.
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
	p.reply <- replyOf(reply)
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

// askHalfway asks the question of a plugin's call, which is parked until the reply comes.
func (a *asker) askHalfway(ctx context.Context, q *approval.Approval) (approval.Reply, error) {
	a.server.parking.mu.Lock()
	full := len(a.server.parking.parked) >= maxParked
	a.server.parking.mu.Unlock()
	if full {
		return approval.Reply{}, approval.NoApproverError(fmt.Sprintf("%d calls wait for replies already", maxParked))
	}
	ctx, cancel := context.WithTimeout(ctx, parkTime) // the call may be over before
	defer cancel()
	reply := make(chan approval.Reply, 1)
	select {
	case a.questions <- halfwayQuestion{elicitParams(q), reply}:
	case <-ctx.Done():
		return approval.Reply{}, context.Cause(ctx)
	}
	select {
	case answer := <-reply:
		return answer, nil
	case <-ctx.Done():
		return approval.Reply{}, context.Cause(ctx)
	}
}
