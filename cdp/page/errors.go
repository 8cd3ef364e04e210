package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// openStep opens a page, and a browser if none is open. The caller has to add the address, which page.open requires.
var openStep = step.Step{Op: step.OpCall, Tool: cdp.Name + ".open", Choose: []string{"url"}}

// ownSteps maps steps of the plugin cdp to the steps of this plugin that replace them.
var ownSteps = map[string]step.Step{
	"targets":                     step.Call(Name+".tabs", nil),
	"state":                       step.Call(Name+".state", json.RawMessage(`{"action":"list"}`)),
	"Page.navigate":               {Op: step.OpCall, Tool: Name + ".open", Choose: []string{"url"}},
	"Page.reload":                 step.Call(Name+".go", json.RawMessage(`{"to":"reload"}`)),
	"Page.handleJavaScriptDialog": step.Call(Name+".dialog", json.RawMessage(`{"action":"accept"}`)),
}

// leadingCommand matches the command that begins a message of the keeper. Callers of this plugin did not call it.
var leadingCommand = lazy.Pattern(`^[A-Z]\w+\.[a-z]\w+( |: )`)

// hostError turns an error of the keeper into the error that callers see.
func (c *invocation) hostError(err error) error {
	k, ok := errors.AsType[*api.Error](err)
	switch {
	case ok && k.Code == api.CodeNavigationFailed:
		return c.declared(k, "failed")
	case ok && k.Code == api.CodeExit:
		return c.declared(k, k.Exit)
	case ok && k.Invalid != nil:
		clean := func(s string) string { return manifest.Clip(manifest.CleanLine(s), 300) }
		e := host.Errorf(host.InvalidArgs, "Tool '%s.%s' failed: 1 violation", Name, c.Tool)
		e.Details = []host.Detail{{Parameter: manifest.CleanLine(k.Invalid.Pointer), Keyword: "tool",
			Provided: clean(k.Invalid.Provided), Expected: clean(k.Invalid.Expected),
			Suggestion: step.TextSuggestion(clean(k.Invalid.Suggestion))}}
		addDetails(e, k)
		return e
	}
	e, ok := c.provider.chrome.HostError(err, c.Request).(*host.Error)
	if !ok {
		return err
	}
	if e.Exit != 0 { // the code belongs to the plugin cdp
		e.Code, e.Exit, e.Steps = host.ToolFailed, 0, nil
	}
	e.Message = leadingCommand().ReplaceAllString(e.Message, "Chrome$1")
	addDetails(e, k)
	for i, s := range e.Steps {
		name, _ := strings.CutPrefix(s.Tool, cdp.Name+".")
		if own, ok := ownSteps[name]; ok {
			own.Options = s.Options
			e.Steps[i] = own
		} else if name == c.Tool { // it repeats the call
			e.Steps[i].Tool = Name + "." + name
		}
	}
	return e
}

// maxMessage limits the message of an error, and maxDetails the size of its details, as for any plugin.
const maxMessage, maxDetails = 2 << 10, 64 << 10

// declared returns the error of a verb that ended with an exit code of its own.
func (c *invocation) declared(k *api.Error, name string) *host.Error {
	message := strings.TrimSpace(manifest.Clean(k.Message))
	e := &host.Error{Code: host.ToolFailed, Message: manifest.Clip(message, maxMessage), Cause: k}
	e.Tool = &host.ToolError{Name: name}
	for _, declared := range c.provider.manifest().ExitCodes {
		if declared.Name == name {
			e.Code, e.Exit, e.Tool.Exit = host.Code(name), declared.Code, declared.Code
			if declared.Suggestion != "" {
				e.Message += " (" + declared.Suggestion + ")"
			}
		}
	}
	if q, ok := k.Details["select"]; ok {
		if raw, err := manifest.Marshal(q); err == nil {
			e.Steps = append(e.Steps, step.Call(Name+".select", raw))
		}
	}
	if len(e.Steps) == 0 && strings.Contains(e.Message, Name+".snapshot") && c.Tool != "snapshot" {
		e.Steps = append(e.Steps, step.Call(Name+".snapshot", nil))
	}
	addDetails(e, k)
	return e
}

// addDetails adds the details of the keeper's error, such as what do has done before the step that failed, also to an
// error with a code of the host.
func addDetails(e *host.Error, k *api.Error) {
	if k == nil || len(k.Details) == 0 {
		return
	}
	tool := host.ToolError{Exit: e.ExitCode(), Name: string(e.Code)}
	if e.Tool != nil {
		tool = *e.Tool
	}
	e.Tool = &tool
	details, err := manifest.Marshal(k.Details)
	switch {
	case err == nil && len(details) <= maxDetails:
		e.Tool.Details = manifest.CleanJSON(details)
	case err == nil:
		e.Tool.Details = json.RawMessage(fmt.Sprintf(`{"omitted_bytes":%d}`, len(details)))
	}
}

// failedStep returns the error of a step of do, which the host runs itself, with what was done before.
func failedStep(err error, i int, tool string, sum api.StepsDone) error {
	if k, ok := errors.AsType[*api.Error](err); ok {
		return sum.FailedStep(i+1, tool, k)
	}
	e := *host.AsError(err)
	k := &api.Error{Message: e.Message}
	if e.Tool != nil {
		_ = json.Unmarshal(e.Tool.Details, &k.Details)
	}
	k = sum.FailedStep(i+1, tool, k)
	e.Message = k.Message
	addDetails(&e, k)
	return &e
}
