// Package api has what a keeper and its clients exchange: callers, requests, results and errors. It also interprets
// names and URLs in them.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/keeper/scan"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/manifest"
)

// The codes of an Error. All but CodeExit are codes of host.Error, too.
const (
	CodeChromeLaunch     = "chrome_launch"
	CodeChromeConnection = "chrome_connection" // also: no browser is open
	CodeTimeout          = "timeout"
	CodeTargetCrashed    = "target_crashed"
	CodeBusy             = "busy" // such as: a JavaScript dialog blocks the target
	CodeLimitExceeded    = "limit_exceeded"
	CodeNotFound         = "not_found"         // no such target
	CodeNavigationFailed = "navigation_failed" // Error.Message has the browser's errorText
	CodeProtocolError    = "protocol_error"    // Chrome returned an error, see Error.Chrome
	CodeInvalidArgs      = "invalid_args"
	CodeUnavailable      = "unavailable"  // not possible on this platform, or the disk failed
	CodeConfigError      = "config_error" // the run folder is unusable
	CodeDenied           = "denied"       // not available to this caller
	CodeExit             = "exit"         // an outcome that a verb declares, see Error.Exit
	CodeInternal         = "internal"
)

// NoLogin is the browser's reason for a page whose server asks for a login.
const NoLogin = "net::ERR_INVALID_AUTH_CREDENTIALS"

// NoPage is the browser's reason for an error status with an empty body.
const NoPage = "net::ERR_HTTP_RESPONSE_CODE_FAILURE"

// LoadingAdvice says what to do about a page that could not be loaded.
type LoadingAdvice struct {
	reason string // a part of Chrome's reason
	Text   string
	Tool   string // the command of the protocol that helps, if one does
}

// AdviseLoading returns the advice for Chrome's reason.
func AdviseLoading(reason string) LoadingAdvice {
	for _, advice := range loadingAdvice {
		if strings.Contains(reason, advice.reason) {
			return advice
		}
	}
	return LoadingAdvice{Text: "check the URL and that the server runs"}
}

// loadingAdvice has the advice by reason. The first that matches counts.
var loadingAdvice = []LoadingAdvice{
	{"ERR_UNSAFE_PORT", "Chrome blocks this port for every server; serve the page on another port, such as 8080", ""},
	{NoLogin, "the server requires a login (HTTP 401): send an Authorization header, or answer Fetch.authRequired",
		"Network.setExtraHTTPHeaders"},
	{NoPage, "the server runs and responded with an error status and no page; with a status of 401 it requires a login: " +
		"send an Authorization header", "Network.setExtraHTTPHeaders"},
	{"ERR_NAME_NOT_RESOLVED", "no server has this name; check the spelling of the host", ""},
	{"ERR_CONNECTION_REFUSED", "nothing listens there; check the port and that the server runs", ""},
	{"ERR_CERT_", "the server's certificate is not valid for this URL", ""},
	{"ERR_SSL_PROTOCOL_ERROR", "the server does not speak TLS on this port; the URL may have to begin with http://", ""},
	{"_SSL_", "Chrome and the server agree on no version of TLS, or the server expects a client certificate", ""},
	{"ERR_EMPTY_RESPONSE", "the server closed the connection without a response; it may expect https://", ""},
	{"ERR_TOO_MANY_REDIRECTS", "the server redirects in a circle, often because of a cookie", ""},
	{"ERR_FILE_NOT_FOUND", "there is no such file; check the path", ""},
	{"ERR_UNKNOWN_URL_SCHEME", "Chrome does not load URLs of this scheme", ""},
	{"ERR_INTERNET_DISCONNECTED", "the page is offline, by emulation or because this machine is",
		"Network.emulateNetworkConditions"},
}

// Error is the type of every failure of this package.
type Error struct {
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Chrome  *ChromeError `json:"chrome,omitempty"`
	// Target is the id of the target concerned.
	Target string `json:"target,omitempty"`
	// Dialog is the dialog that blocks the target, with CodeBusy.
	Dialog *Dialog `json:"dialog,omitempty"`
	// Restless says that the call got no answer because the document was replaced again and again, with CodeBusy.
	Restless bool `json:"restless,omitempty"`
	// Bytes is the size of the reply over the limit, with CodeLimitExceeded; zero if unknown.
	Bytes int64 `json:"bytes,omitempty"`
	// NoPage says that the caller named no target and has no page, with CodeNotFound.
	NoPage bool `json:"no_page,omitempty"`
	// Denied are the missing rights, with CodeDenied. It is empty if no right would help.
	Denied []grant.Denial `json:"denied,omitempty"`
	// Exit is the name of the exit code of the verb, with CodeExit, and Details are what callers see of it.
	Exit    string         `json:"exit,omitempty"`
	Details map[string]any `json:"details,omitempty"`
	// Subject is what a verb acted on, or tried to act on, as in PageResult.
	Subject string `json:"subject,omitempty"`
	// Remedy is what the operator can write into the policy to accept the server, with CodeNavigationFailed.
	Remedy string `json:"remedy,omitempty"`
	// Invalid is the parameter that is wrong, with CodeInvalidArgs. It is nil if no single one is.
	Invalid *Invalid `json:"invalid,omitempty"`
}

// Invalid says what is wrong with a parameter, as a host.Detail does.
type Invalid struct {
	Pointer    string `json:"pointer"`
	Expected   string `json:"expected"`
	Provided   string `json:"provided"`
	Suggestion string `json:"suggestion,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// ChromeError is the error that Chrome returned. Data is a text, or JSON if Chrome sent another type.
type ChromeError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

// Errorf returns an error with a code and a formatted message.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// RestlessPage returns the error for a page that answers no call because its document is replaced all the time.
func RestlessPage() *Error {
	return &Error{Code: CodeBusy, Restless: true, Message: "the page keeps changing documents"}
}

// FromChrome decodes the error member of a reply.
func FromChrome(method string, raw json.RawMessage) *Error {
	var foreign struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &foreign); err != nil {
		return Errorf(CodeProtocolError, "%s failed with an error that cannot be read: %s",
			method, manifest.Clip(string(raw), 200))
	}
	data := string(foreign.Data)
	var text string
	if json.Unmarshal(foreign.Data, &text) == nil {
		data = text
	}
	e := Errorf(CodeProtocolError, "%s failed: %s (%d)", method, foreign.Message, foreign.Code)
	if data != "" {
		e.Message += ": " + data
	}
	e.Chrome = &ChromeError{Code: foreign.Code, Message: foreign.Message, Data: data}
	return e
}

// Exception is what a script threw, as Chrome reports it.
type Exception struct {
	Text      string `json:"text"`
	Line      int    `json:"lineNumber"` // from 0, as Column
	Column    int    `json:"columnNumber"`
	Exception struct {
		Description string          `json:"description"`
		Value       json.RawMessage `json:"value"`
	} `json:"exception"`
}

// String returns the first line of what was thrown.
func (e Exception) String() string {
	if line, _, _ := strings.Cut(e.Exception.Description, "\n"); line != "" {
		return line
	}
	return strings.TrimSpace(e.Text + " " + string(e.Exception.Value))
}

// RunDirError reports that a keeper's files cannot be created, locked or removed in the run folder. err names the
// file.
func RunDirError(err error) *Error {
	return Errorf(CodeConfigError, "the run folder is unusable: %v", err)
}

// ContextError returns the error for an operation that the end of a context has stopped.
func ContextError(ctx context.Context, what string) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Errorf(CodeTimeout, "%s timed out", what)
	}
	return Errorf(CodeTimeout, "%s was cancelled by its caller", what)
}

// Decode decodes the body of a request, which may be empty.
func Decode(body json.RawMessage, into any) *Error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return Errorf(CodeInvalidArgs, "the parameters cannot be decoded: %v", err)
	}
	return nil
}

// Serve decodes the body of a request, runs it, and encodes the result.
func Serve[Q, R any](body json.RawMessage, run func(Q) (R, *Error)) (json.RawMessage, *Error) {
	var q Q
	if err := Decode(body, &q); err != nil {
		return nil, err
	}
	result, err := run(q)
	if err != nil {
		return nil, err
	}
	return scan.Marshal(result), nil
}
