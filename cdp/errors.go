package cdp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
				e.Steps = append(e.Steps, grantStep(r, d.Right))
			}
		}
	case keeper.CodeNavigationFailed:
		setDeclaredExit(e, exitNavigationFailed, "navigation_failed", nil)
		adviseNavigation(e, k.Message, r)
	case keeper.CodeProtocolError:
		if k.Chrome != nil && strings.Contains(k.Chrome.Message, "invalid URL") {
			e.Code = host.InvalidURL
			break
		}
		setDeclaredExit(e, exitProtocolError, "protocol_error", nil)
		if r != nil {
			e.Steps = p.protocolSteps(r, k)
		}
	case keeper.CodeChromeConnection:
		e.Steps = []host.Step{openStep.At(browserOf(r))}
	case keeper.CodeChromeLaunch:
		e.Steps = []host.Step{host.OperatorStep(host.OpDoctor)}
	case keeper.CodeConfigError:
		e.Message += "; set PARLEY_HOME to a folder that you can write to"
		e.Steps = []host.Step{host.OperatorStep(host.OpDoctor)}
	case keeper.CodeTargetCrashed:
		navigate := toolStep("Page.navigate", nil)
		navigate.Choose = []string{"url"}
		e.Steps = []host.Step{toolStep("Page.reload", nil).At(pageOf(r)), navigate.At(pageOf(r))}
	case keeper.CodeNotFound:
		e.Steps = []host.Step{toolStep("targets", nil).At(browserOf(r))}
	case keeper.CodeBusy:
		e.Steps = []host.Step{toolStep("Page.handleJavaScriptDialog", map[string]any{"accept": true}).At(pageOf(r))}
	case keeper.CodeLimitExceeded:
		e.Message += "; request less, such as a part of the page"
		if k.Bytes > 0 && r != nil && isPerson(r.Caller) && r.Out == nil {
			e.Message += ", or write the result to a file, which can have any size"
			e.Steps = []host.Step{repeatStep(r, host.StepOptions{Out: true})}
		}
	}
	return e
}

// toolStep returns the step that calls a tool of this plugin.
func toolStep(name string, params map[string]any) host.Step {
	step := host.CallStep(Name+"."+name, nil)
	if params == nil {
		return step
	}
	return step.With(params)
}

// repeatStep returns the step that repeats a call with other options.
func repeatStep(r *host.Request, options host.StepOptions) host.Step {
	step := host.CallStep(Name+"."+r.Tool, r.Params)
	step.Options = options
	return step.At(r.Options)
}

// browserOf and pageOf return the options that direct a step to the browser of a call, and to its page.
func browserOf(r *host.Request) host.Options {
	return host.Options{Browser: pageOf(r).Browser}
}

func pageOf(r *host.Request) host.Options {
	if r == nil {
		return host.Options{}
	}
	return r.Options
}

// setDeclaredExit sets the code of an error to one that the plugin declares.
func setDeclaredExit(e *host.Error, exit int, name string, details json.RawMessage) {
	e.Code, e.Exit = host.Code(name), exit
	e.Tool = &host.ToolError{Exit: exit, Name: name, Details: details}
}

func navigationError(text string, r *host.Request) *host.Error {
	var q struct {
		URL string `json:"url"`
	}
	_ = json.Unmarshal(r.Params, &q)
	e := &host.Error{Message: manifest.CleanLine(fmt.Sprintf("navigation to %s failed: %s", q.URL, text))}
	adviseNavigation(e, text, r)
	details, _ := json.Marshal(map[string]string{"error_text": manifest.CleanLine(text)})
	setDeclaredExit(e, exitNavigationFailed, "navigation_failed", details)
	return e
}

// adviseNavigation adds to the error of a failed navigation how to proceed, by Chrome's reason.
func adviseNavigation(e *host.Error, reason string, r *host.Request) {
	if strings.Contains(reason, "net::ERR_ABORTED") {
		e.Message += "; a download or an empty response shows no page, and the list of targets says whether the page crashed"
		e.Steps = []host.Step{toolStep("targets", nil).At(browserOf(r))}
		return
	}
	e.Message += "; check the URL and that the server runs"
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
