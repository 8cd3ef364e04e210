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
	// confirmTimeout is how long a person may take to reply.
	confirmTimeout = 5 * time.Minute
	// confirmID names the one question of a call.
	confirmID = "confirm"
	// firstStateless is the first revision without sessions. In it, a question is the result of a call: the client calls
	// again with the reply.
	firstStateless = "2026-07-28"
	maxQuestion    = 600
	maxRedeemed    = 10_000
)

// confirmerKey is the key of the confirmer in a call's context.
type confirmerKey struct{}

// confirmer asks the person at the client of one call.
type confirmer struct {
	server  *Server
	request *sdk.CallToolRequest
	caller  caller
}

// Confirm is [host.Config].Confirm for calls over MCP: it makes the client ask a person. If the client cannot ask, the
// call is denied.
func Confirm(ctx context.Context, ask host.Ask, reason string) (bool, error) {
	a, ok := ctx.Value(confirmerKey{}).(*confirmer)
	if !ok {
		return false, denied(ask, reason, "nobody can be asked")
	}
	capabilities := a.request.ClientCapabilities()
	if capabilities == nil || capabilities.Elicitation == nil ||
		capabilities.Elicitation.Form == nil && capabilities.Elicitation.URL != nil {
		return false, denied(ask, reason, "this client cannot ask (it has no elicitation)")
	}
	if a.request.ProtocolVersion() >= firstStateless {
		return a.confirmByRetry(ask, reason)
	}
	return a.elicit(ctx, ask, reason)
}

func denied(ask host.Ask, reason, why string) *host.Error {
	return host.Errorf(host.Denied, "%s.%s requires confirmation (%s), and %s; nothing was run",
		ask.Plugin, ask.Tool, manifest.CleanLine(reason), why).
		WithSteps(host.OperatorStep(host.OpPolicyExplain, ask.Plugin+"."+ask.Tool))
}

// elicit asks while the call waits, as revisions before firstStateless do.
func (a *confirmer) elicit(ctx context.Context, ask host.Ask, reason string) (bool, error) {
	hungUp := hungUp(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, confirmTimeout,
		denied(ask, reason, fmt.Sprintf("nobody replied within %s", confirmTimeout)))
	defer cancel()
	defer context.AfterFunc(hungUp, cancel)()
	answer, err := a.request.Session.Elicit(ctx, elicitParams(ask, reason))
	switch {
	case hungUp.Err() != nil:
		return false, denied(ask, reason, "the client hung up")
	case err != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, denied(ask, reason, "the client did not ask: "+manifest.CleanLine(err.Error()))
	}
	return answer.Action == "accept", nil
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

// errWrongState is the cause of the failure of a call that carries a reply with a state that was not issued for it.
var errWrongState = errors.New("the state is not of this call")

// confirmByRetry returns the reply that the client has sent along with the call, or else a question for it as an
// error. A reply is valid once, for the very call that was asked about; the protocol requires an error of its own for
// a reply with another state. What a plugin calls cannot be asked about: the plugin's own call has begun and cannot
// begin again.
func (a *confirmer) confirmByRetry(ask host.Ask, reason string) (bool, error) {
	if ask.Within != "" {
		return false, denied(ask, reason, "a plugin calls it, which this revision of MCP cannot ask about half-way")
	}
	about := a.binding(ask)
	if answer, ok := a.request.Params.InputResponses[confirmID].(*sdk.ElicitResult); ok {
		if !a.server.redeem(a.request.Params.RequestState, about) {
			e := denied(ask, reason, "the reply belongs to another call, has expired or was used before")
			e.Cause = errWrongState
			return false, e
		}
		return answer.Action == "accept", nil
	}
	q := &inputRequired{elicitParams(ask, reason), a.server.issueTicket(about)}
	return false, &host.Error{
		Code: host.Denied, Cause: q,
		Message: fmt.Sprintf("%s.%s must be confirmed: the client was asked; nothing was run yet", ask.Plugin, ask.Tool),
	}
}

// binding identifies the call that a reply is valid for.
func (a *confirmer) binding(ask host.Ask) string {
	return sessionHash("confirm", a.caller.name, a.caller.session, ask.Plugin, ask.Tool, string(ask.Params))
}

func elicitParams(ask host.Ask, reason string) *sdk.ElicitParams {
	message := fmt.Sprintf("%s wants to call %s.%s %s (%s). Go on?",
		ask.Caller, ask.Plugin, ask.Tool, manifest.EscapeJSON(ask.Params), reason)
	if ask.Within != "" {
		message = "Within a call that is under way, " + message
	}
	return &sdk.ElicitParams{
		Mode: "form", Message: manifest.Clip(manifest.CleanLine(message), maxQuestion),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`),
	}
}

// issueTicket returns the state that the client must send along with its reply.
func (s *Server) issueTicket(about string) string {
	body := fmt.Sprintf("%s.%d", newID(), time.Now().Add(confirmTimeout).Unix())
	return base64.RawURLEncoding.EncodeToString([]byte(body + "." + s.sign(body, about)))
}

// redeem reports whether a ticket is valid, and invalidates it.
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
	for id, expires := range s.redeemed {
		if time.Now().After(expires) {
			delete(s.redeemed, id)
		}
	}
	if _, used := s.redeemed[parts[0]]; used || len(s.redeemed) >= maxRedeemed {
		return false
	}
	s.redeemed[parts[0]] = time.Unix(until, 0).Add(time.Second)
	return true
}

func (s *Server) sign(body, about string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(body + "\x00" + about))
	return hex.EncodeToString(mac.Sum(nil))
}
