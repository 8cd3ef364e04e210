package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

const (
	// confirmWithin is how long a person may take to answer.
	confirmWithin = 5 * time.Minute
	// confirmID names the one question of a call.
	confirmID = "confirm"
	// firstReturning is the first revision in which a question is returned to the client, which calls again with the answer.
	firstReturning = "2026-07-28"
	maxQuestion    = 600
	maxUsed        = 10_000
)

// askerKey is the key of a call's context under which its asker stands.
type askerKey struct{}

// asker asks the person behind the client of one call.
type asker struct {
	server  *Server
	request *sdk.CallToolRequest
	caller  caller
}

// Confirm is host.Config.Confirm for calls that come over MCP: the client is asked to ask its person. Where it cannot, nobody
// can say yes, and the call is denied.
func Confirm(ctx context.Context, ask host.Ask, reason string) (bool, error) {
	a, ok := ctx.Value(askerKey{}).(*asker)
	if !ok {
		return false, refused(ask, reason, "nobody can be asked")
	}
	capabilities := a.request.ClientCapabilities()
	if capabilities == nil || capabilities.Elicitation == nil || capabilities.Elicitation.Form == nil && capabilities.Elicitation.URL != nil {
		return false, refused(ask, reason, "this client cannot ask (it has no elicitation)")
	}
	if a.request.ProtocolVersion() >= firstReturning {
		return a.returned(ask, reason)
	}
	return a.elicit(ctx, ask, reason)
}

func refused(ask host.Ask, reason, why string) *host.Error {
	return host.Errorf(host.Denied, "%s.%s requires confirmation (%s), and %s; nothing was run", ask.Plugin, ask.Tool, manifest.CleanLine(reason), why).
		WithSteps(host.OperatorStep(host.OpPolicyExplain, ask.Plugin+"."+ask.Tool))
}

// elicit asks while the call waits, as revisions before 2026-07-28 do.
func (a *asker) elicit(ctx context.Context, ask host.Ask, reason string) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, confirmWithin, refused(ask, reason, fmt.Sprintf("nobody answered within %s", confirmWithin)))
	defer cancel()
	defer context.AfterFunc(a.server.gone, cancel)()
	answer, err := a.request.Session.Elicit(ctx, elicitation(ask, reason))
	switch {
	case a.server.gone.Err() != nil:
		return false, refused(ask, reason, "the client hung up")
	case err != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, refused(ask, reason, "the client did not ask: "+manifest.CleanLine(err.Error()))
	}
	return answer.Action == "accept", nil
}

// question is the error of a call that goes back to the client with a question, and has run nothing.
type question struct {
	params *sdk.ElicitParams
	state  string
}

func (q *question) Error() string { return q.params.Message }

func (q *question) result() *sdk.CallToolResult {
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{confirmID: q.params}, RequestState: q.state}
}

// errState is the cause of a call's failure that brought an answer with a state that this server did not make for it.
var errState = errors.New("the state is not of this call")

// returned looks for the answer that the client came back with, and returns the question where there is none. An answer holds for the
// very call that was asked about, once; the protocol wants what comes with another state refused as an error of its own. A call that a plugin
// has begun cannot be begun again.
func (a *asker) returned(ask host.Ask, reason string) (bool, error) {
	if ask.Within != "" {
		return false, refused(ask, reason, "a plugin calls it, in a call that cannot be asked about half-way in this revision of MCP")
	}
	about := a.about(ask)
	if answer, ok := a.request.Params.InputResponses[confirmID].(*sdk.ElicitResult); ok {
		if !a.server.redeem(a.request.Params.RequestState, about) {
			e := refused(ask, reason, "the answer that came belongs to another call, is too old or was used before")
			e.Cause = errState
			return false, e
		}
		return answer.Action == "accept", nil
	}
	q := &question{elicitation(ask, reason), a.server.ticket(about)}
	return false, &host.Error{Code: host.Denied, Cause: q, Message: fmt.Sprintf("%s.%s must be confirmed: the client was asked; nothing was run yet", ask.Plugin, ask.Tool)}
}

// about is what an answer is bound to.
func (a *asker) about(ask host.Ask) string {
	return hashed("confirm", a.caller.name, a.caller.session, ask.Plugin, ask.Tool, string(ask.Params))
}

func elicitation(ask host.Ask, reason string) *sdk.ElicitParams {
	message := fmt.Sprintf("%s wants to call %s.%s %s (%s). Go on?", ask.Caller, ask.Plugin, ask.Tool, manifest.EscapeJSON(ask.Params), reason)
	if ask.Within != "" {
		message = "Within a call that is under way, " + message
	}
	return &sdk.ElicitParams{Mode: "form", Message: manifest.Clip(manifest.CleanLine(message), maxQuestion), RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}
}

// ticket is what the client must bring back with an answer about something.
func (s *Server) ticket(about string) string {
	body := fmt.Sprintf("%s.%d", newID(), time.Now().Add(confirmWithin).Unix())
	return base64.RawURLEncoding.EncodeToString([]byte(body + "." + s.sign(body, about)))
}

// redeem takes a ticket, once.
func (s *Server) redeem(ticket, about string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(ticket)
	if err != nil {
		return false
	}
	parts := strings.Split(string(raw), ".")
	if len(parts) != 3 || !hmac.Equal([]byte(parts[2]), []byte(s.sign(parts[0]+"."+parts[1], about))) {
		return false
	}
	var until int64
	if _, err := fmt.Sscan(parts[1], &until); err != nil || time.Now().Unix() > until {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, expires := range s.used {
		if time.Now().After(expires) {
			delete(s.used, id)
		}
	}
	if _, used := s.used[parts[0]]; used || len(s.used) >= maxUsed {
		return false
	}
	s.used[parts[0]] = time.Unix(until, 0).Add(time.Second)
	return true
}

func (s *Server) sign(body, about string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(body + "\x00" + about))
	return hex.EncodeToString(mac.Sum(nil))
}
