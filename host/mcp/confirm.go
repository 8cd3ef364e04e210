package mcp

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/mcp/frame"
	"github.com/parley-tools/parley/manifest"
)

const (
	// confirmTimeout is how long a person may take to reply.
	confirmTimeout = 5 * time.Minute
	// confirmID names the one question of a call.
	confirmID   = "confirm"
	maxQuestion = 600
	maxRedeemed = 10_000
)

// askerKey is the key of the asker in a call's context.
type askerKey struct{}

// asker asks the person at the client of one call.
type asker struct {
	server  *Server
	request *sdk.CallToolRequest
	caller  host.Principal
	// questions takes those that a plugin's call puts half-way; see waitingCall.
	questions chan<- halfwayQuestion
}

// Approver is the [host.Approver] for calls over MCP: it makes the client ask a person to confirm a call. Nobody is
// asked about rights, for these are the operator's to give, nor about calls that do not come over MCP.
type Approver struct{}

// Approve implements [host.Approver].
func (Approver) Approve(ctx context.Context, q *host.Question) (host.Approval, error) {
	a, ok := ctx.Value(askerKey{}).(*asker)
	if !ok || q.Kind != host.AskConfirm {
		return host.Approval{}, host.NoApproverError("nobody can be asked")
	}
	if !a.canAsk() {
		return host.Approval{}, host.NoApproverError("this client cannot ask (it has no elicitation)")
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

// elicit asks while the call waits, as revisions with sessions do.
func (a *asker) elicit(ctx context.Context, q *host.Question) (host.Approval, error) {
	hungUp := hungUp(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, confirmTimeout,
		host.NoApproverError(fmt.Sprintf("nobody replied within %s", confirmTimeout)))
	defer cancel()
	defer context.AfterFunc(hungUp, cancel)()
	reply, err := a.request.Session.Elicit(ctx, elicitParams(q))
	switch {
	case hungUp.Err() != nil:
		return host.Approval{}, host.NoApproverError("the client hung up")
	case err != nil && ctx.Err() != nil:
		return host.Approval{}, context.Cause(ctx)
	case err != nil:
		return host.Approval{}, host.NoApproverError("the client did not ask: " + manifest.CleanLine(err.Error()))
	}
	return approval(reply), nil
}

// approval returns the decision of a reply. Only "accept" is yes.
func approval(reply *sdk.ElicitResult) host.Approval {
	return host.Approval{Yes: reply.Action == "accept", By: host.ByMCP}
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
const errWrongState = host.NoApproverError("the reply belongs to another call, has expired or was used before")

// confirmByRetry returns the reply that the client has sent along with the call, or else a question for it as an
// error. A reply is valid once, for the very call that was asked about; the protocol requires an error of its own for
// a reply with another state.
func (a *asker) confirmByRetry(q *host.Question) (host.Approval, error) {
	about := a.binding(q)
	if reply, ok := a.request.Params.InputResponses[confirmID].(*sdk.ElicitResult); ok {
		question, ok := a.server.tickets.redeem(a.request.Params.RequestState, about)
		if !ok {
			return host.Approval{}, errWrongState
		}
		answer := approval(reply)
		answer.Question = question
		return answer, nil
	}
	required := &inputRequired{elicitParams(q), a.server.tickets.issue(q.ID, about)}
	return host.Approval{}, &host.Error{
		Code: host.Denied, Cause: required,
		Message: fmt.Sprintf("%s.%s must be confirmed: the client was asked; nothing was run yet", q.Ask.Plugin, q.Ask.Tool),
	}
}

// binding identifies the call that a reply is valid for.
func (a *asker) binding(q *host.Question) string {
	return nameHash("confirm", a.caller.Name, a.caller.Session.Key(), q.Ask.Plugin, q.Ask.Tool, string(q.Params))
}

func elicitParams(q *host.Question) *sdk.ElicitParams {
	message := fmt.Sprintf("%s wants to call %s.%s %s (%s). Go on?",
		q.Ask.Principal.Name, q.Ask.Plugin, q.Ask.Tool, manifest.EscapeJSON(q.Params), q.Reason)
	if q.Within != "" {
		message = "Within a call that is under way, " + message
	}
	return &sdk.ElicitParams{
		Mode: "form", Message: manifest.Clip(manifest.CleanLine(message), maxQuestion),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}
}

// tickets are the states that clients carry between two rounds of a call. It is safe for concurrent use.
type tickets struct {
	key []byte // signs them
	now func() time.Time

	mu       sync.Mutex
	redeemed map[string]time.Time // those that were used, until they would expire
}

// issue returns the state that the client must send along with its reply to a question.
func (s *tickets) issue(question, about string) string {
	body := fmt.Sprintf("%s.%d", question, s.now().Add(confirmTimeout).Unix())
	return base64.RawURLEncoding.EncodeToString([]byte(body + "." + s.sign(body, about)))
}

// redeem invalidates a ticket and returns the question that it was issued for. It reports whether the ticket was valid.
func (s *tickets) redeem(ticket, about string) (question string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil {
		return "", false
	}
	parts := strings.Split(string(raw), ".")
	if len(parts) != 3 || !hmac.Equal([]byte(parts[2]), []byte(s.sign(parts[0]+"."+parts[1], about))) {
		return "", false
	}
	question = parts[0]
	var until int64
	if _, err := fmt.Sscan(parts[1], &until); err != nil || s.now().Unix() > until {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, expires := range s.redeemed {
		if s.now().After(expires) {
			delete(s.redeemed, id)
		}
	}
	if _, used := s.redeemed[question]; used || len(s.redeemed) >= maxRedeemed {
		return "", false
	}
	s.redeemed[question] = time.Unix(until, 0).Add(time.Second)
	return question, true
}

func (s *tickets) sign(body, about string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(body + "\x00" + about))
	return hex.EncodeToString(mac.Sum(nil))
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
