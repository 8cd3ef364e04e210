package cdp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-tools/parley/cdp/internal/keeper"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// hostError turns a keeper's error into the error that callers see, with its code and next steps. It returns other
// errors unchanged.
func (p *Provider) hostError(err error, r *host.Request) error {
	var k *keeper.Error
	if !errors.As(err, &k) {
		return err
	}
	e := &host.Error{Code: host.Code(k.Code), Message: manifest.Clean(k.Message), Cause: err}
	if k.Chrome != nil {
		e.Protocol = &host.ProtocolError{Code: k.Chrome.Code, Message: manifest.Clean(k.Chrome.Message),
			Data: manifest.Clean(k.Chrome.Data)}
	}
	switch k.Code {
	case keeper.CodeDenied:
		for _, d := range k.Denied {
			e.Denied = append(e.Denied, host.Denial{Right: manifest.CleanLine(d.Right), Why: manifest.CleanLine(d.Why)})
			if r != nil {
				e.Next = append(e.Next, grantCommand(r, d.Right))
			}
		}
	case keeper.CodeNavigationFailed:
		setDeclaredExit(e, exitNavigationFailed, "navigation_failed", nil)
		e.Next = []string{navigationAdvice(k.Message)}
	case keeper.CodeProtocolError:
		if k.Chrome != nil && strings.Contains(k.Chrome.Message, "invalid URL") {
			e.Code = host.InvalidURL
			break
		}
		setDeclaredExit(e, exitProtocolError, "protocol_error", nil)
		if r != nil {
			e.Next = p.protocolSteps(r, k)
		}
	case keeper.CodeChromeConnection:
		e.Next = []string{openCommand + browserOf(r)}
	case keeper.CodeChromeLaunch:
		e.Next = []string{"parley doctor"}
	case keeper.CodeConfigError:
		e.Next = []string{"set PARLEY_HOME to a folder that you may write to"}
	case keeper.CodeTargetCrashed:
		e.Next = []string{"parley cdp Page.reload" + pageOf(r), "parley cdp Page.navigate --param url=URL" + pageOf(r)}
	case keeper.CodeNotFound:
		e.Next = []string{"parley cdp targets" + browserOf(r)}
	case keeper.CodeBusy:
		e.Next = []string{`parley cdp Page.handleJavaScriptDialog --params '{"accept":true}'` + pageOf(r)}
	case keeper.CodeTimeout:
		e.Next = []string{"give it longer with --timeout " + longerTimeout(r)}
	case keeper.CodeLimitExceeded:
		e.Next = []string{"ask for less, such as a part of the page"}
		if k.Bytes > 0 && r != nil && r.Caller == "cli" && r.Out == nil {
			e.Next = append([]string{"add --out FILE, without --jq: it takes a result of any size"}, e.Next...)
		}
	}
	return e
}

// browserOf and pageOf return the options that direct another command to the browser of a call, and to its page.
func browserOf(r *host.Request) string {
	if r == nil {
		return ""
	}
	return place(host.Options{Browser: r.Options.Browser})
}

func pageOf(r *host.Request) string {
	if r == nil {
		return ""
	}
	return place(r.Options)
}

func place(o host.Options) (words string) {
	if o.Browser != "" && o.Browser != host.DefaultBrowser {
		words += " --browser " + manifest.ShellQuote(manifest.CleanLine(o.Browser))
	}
	if o.Target != "" {
		words += " --target " + manifest.ShellQuote(manifest.CleanLine(o.Target))
	}
	return words
}

func longerTimeout(r *host.Request) string {
	if r == nil || r.Options.Timeout <= 0 {
		return (2 * host.DefaultTimeout).String()
	}
	return (4 * r.Options.Timeout).Round(time.Second).String()
}

// setDeclaredExit sets the code of an error to one that the plugin declares.
func setDeclaredExit(e *host.Error, exit int, name string, details json.RawMessage) {
	e.Code, e.Exit = host.Code(name), exit
	e.Tool = &host.ToolError{Exit: exit, Name: name, Details: details}
}

func navigationError(text string, params json.RawMessage) *host.Error {
	var q struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(params, &q)
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("navigation to %s failed: %s", q.URL, text)),
		Next: []string{navigationAdvice(text)}}
	details, _ := json.Marshal(map[string]string{"error_text": manifest.CleanLine(text)})
	setDeclaredExit(e, exitNavigationFailed, "navigation_failed", details)
	return e
}

// navigationAdvice suggests how to proceed after a failed navigation, by Chrome's reason.
func navigationAdvice(reason string) string {
	if strings.Contains(reason, "net::ERR_ABORTED") {
		return "a download and an empty answer show no page; parley cdp targets tells whether the page has crashed"
	}
	return "check the URL and that the server runs"
}

// maxExceptionDetails is the limit in bytes of the exception details in an error. Larger ones are dropped.
const maxExceptionDetails = 4096

func scriptError(raw json.RawMessage) *host.Error {
	var exception struct {
		Text         string `json:"text"`
		LineNumber   int    `json:"lineNumber"`
		ColumnNumber int    `json:"columnNumber"`
		Exception    struct {
			Description string          `json:"description"`
			Value       json.RawMessage `json:"value"`
		} `json:"exception"`
	}
	_ = json.Unmarshal(raw, &exception)
	text := exception.Text
	switch {
	case exception.Exception.Description != "":
		text, _, _ = strings.Cut(exception.Exception.Description, "\n")
	case len(exception.Exception.Value) > 0:
		text += " " + string(exception.Exception.Value)
	}
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("the page's script threw: %s (line %d, column %d)",
		manifest.Clip(text, 1000), exception.LineNumber+1, exception.ColumnNumber+1))}
	if len(raw) > maxExceptionDetails {
		raw = nil
	}
	setDeclaredExit(e, exitScriptError, "script_error", raw)
	return e
}
