package mcp

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// failure is the error object, with the other members of an envelope. Documentation is rendered.
type failure struct {
	*host.ErrorObject
	Docs     string     `json:"docs,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
	Next     []nextCall `json:"next"`
	CallID   string     `json:"call_id,omitempty"`
}

func (w *renderer) failure(a *host.Answer) failure {
	next := a.Steps
	if len(next) == 0 {
		next = a.Err.Steps
	}
	calls := w.offered(next)
	if a.Err.Code == host.Denied && len(calls) == 0 && a.Tool != "" && a.Err.Approval == "" {
		calls = w.steps([]step.Step{step.Describe(a.Tool, 0)}) // what the tool takes and needs
	}
	f := failure{ErrorObject: a.Err.Object(), Warnings: a.Warnings, Next: calls, CallID: a.CallID}
	if a.Err.Docs != nil {
		f.Docs = a.Err.Docs.Text()
	}
	return f
}

// offered renders the steps that may be offered.
func (w *renderer) offered(steps []step.Step) []nextCall {
	var hold []step.Step
	for _, s := range host.BoundedSteps(steps) {
		if s, ok := advice.Holds(w.host.Names(), s); ok {
			hold = append(hold, s)
		}
	}
	return w.steps(hold)
}

// taughtResult makes the result of a mistake in the arguments of a meta-tool. The first step is the whole corrected
// call.
func (m *modeServer) taughtResult(r *sdk.CallToolRequest, a *host.Answer) *sdk.CallToolResult {
	known := len(a.Err.Steps)
	meta, corrected := m.names.Teach(r.Params.Name, r.Params.Arguments, a.Err)
	if len(a.Err.Steps) > known {
		a.Steps = a.Err.Steps
	}
	a.Err = a.Err.Bounded()
	f := m.out.failure(a)
	if meta != "" && a.Err.Corrected != nil {
		f.Next = slices.Insert(slices.DeleteFunc(f.Next, func(c nextCall) bool { return c.Tool == callTool }), 0,
			nextCall{Tool: meta, Arguments: corrected})
	}
	return f.result()
}

// result makes the result of a failure.
func (f failure) result() *sdk.CallToolResult {
	result := jsonResult(f)
	result.IsError = true
	return result
}

// jsonResult makes a result of one JSON document.
func jsonResult(v any) *sdk.CallToolResult { return textResult(string(marshalEscaped(v)), nil) }

func textContent(s string) *sdk.TextContent { return &sdk.TextContent{Text: s} }

func withWarnings(r *sdk.CallToolResult, warnings []string) *sdk.CallToolResult {
	if r == nil || len(warnings) == 0 || len(r.InputRequests) > 0 {
		return r
	}
	r.Content = append(r.Content, textContent(strings.TrimSuffix(warningLines(warnings), "\n")))
	return r
}

func warningLines(warnings []string) (lines string) {
	for _, w := range warnings {
		lines += "warning: " + manifest.CleanLine(w) + "\n"
	}
	return lines
}

// successResult makes the result of a call that succeeded: binary content in the form that clients show, and the rest
// of the data as text. An object without binary content is structured content, too, unless content blocks belong to it
// and the tool declares no object: clients that get structured content may show nothing else. The content blocks of the
// result follow, then warnings, the next steps and the documentation that comes with the first use of a tool, as texts
// of their own.
func (w *renderer) successResult(a *host.Answer) *sdk.CallToolResult {
	result := &sdk.CallToolResult{}
	rest := a.Data
	for content, left, ok := binaryContent(a, rest); ok; content, left, ok = binaryContent(a, rest) {
		result.Content = append(result.Content, content)
		rest = left
	}
	switch {
	case len(a.Content) > 0 && (len(a.Data) == 0 || string(a.Data) == "null"):
	case len(result.Content) == 0:
		if isWhole := len(a.Content) == 0 || describesObject(a.Returns); isWhole && len(a.Data) > 0 && a.Data[0] == '{' {
			result.StructuredContent = a.Data
		}
		result.Content = append(result.Content, textContent(displayText(a.Data)))
	case len(rest) > 0:
		result.Content = append(result.Content, textContent(string(rest)))
	}
	result.Content = append(result.Content, lists.Map(a.Content, contentBlock)...)
	withWarnings(result, a.Warnings)
	if next := w.offered(a.Steps); len(next) > 0 {
		result.Content = append(result.Content, textContent(string(marshalEscaped(map[string][]nextCall{"next": next}))))
	}
	if a.Docs != nil {
		result.Content = append(result.Content, textContent(firstUseText(a.Docs)))
	}
	return result
}

// firstUseText returns the documentation that comes with the first use of a tool.
func firstUseText(d *host.Docs) string {
	return "About this tool (shown once):\n" + strings.TrimSpace(d.Text())
}

// docsSizeInCall is for [host.WithDocsSize]: the size of documentation in the result of a call.
func docsSizeInCall(d *host.Docs, inError bool) int {
	if inError {
		return len(d.Text())
	}
	return len(firstUseText(d))
}

// contentBlock maps a block of a result to MCP's.
func contentBlock(c job.Content) sdk.Content {
	raw, err := base64.StdEncoding.DecodeString(c.Data)
	if err != nil {
		return textContent(fmt.Sprintf("(%s of type %s: its data is not valid base64)", c.Type, c.MIME))
	}
	if c.Data == "" {
		raw = nil
	}
	return decodedBlock(c, raw)
}

// decodedBlock is contentBlock for a block whose data is decoded. A resource without data is a text.
func decodedBlock(c job.Content, raw []byte) sdk.Content {
	switch c.Type {
	case job.ContentImage:
		return &sdk.ImageContent{Data: raw, MIMEType: c.MIME}
	case job.ContentAudio:
		return &sdk.AudioContent{Data: raw, MIMEType: c.MIME}
	case job.ContentResource:
		resource := &sdk.ResourceContents{URI: c.URI, MIMEType: c.MIME, Blob: raw}
		if raw == nil {
			resource.Text = c.Text
		}
		return &sdk.EmbeddedResource{Resource: resource}
	case job.ContentLink:
		return &sdk.ResourceLink{URI: c.URI, Name: cmp.Or(c.Text, c.URI), MIMEType: c.MIME}
	}
	return textContent(c.Text)
}

// displayText renders data: a string without its quotes, anything else as JSON.
func displayText(data json.RawMessage) string {
	var s string
	if len(data) > 0 && data[0] == '"' && json.Unmarshal(data, &s) == nil {
		return s
	}
	return string(data)
}

// binaryContent returns the first binary content in data that the tool's schema declares, and the rest of the data.
func binaryContent(a *host.Answer, data json.RawMessage) (content sdk.Content, rest json.RawMessage, ok bool) {
	if a.Cut {
		return nil, nil, false
	}
	encoded, declared, ok := manifest.Binary(data, a.Returns)
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return nil, nil, false
	}
	c := job.Content{Type: job.ContentResource, MIME: session.MediaType(raw, declared), URI: resultURI + a.CallID}
	switch {
	case strings.HasPrefix(c.MIME, "image/"):
		c.Type = job.ContentImage
	case strings.HasPrefix(c.MIME, "audio/"):
		c.Type = job.ContentAudio
	}
	return decodedBlock(c, raw), withoutMember(data, encoded), true
}

// withoutMember returns an object without the members whose value is the text encoded, or nil if none is left.
func withoutMember(data json.RawMessage, encoded string) json.RawMessage {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	for name, raw := range members {
		var s string
		if bytes.HasPrefix(raw, []byte(`"`)) && json.Unmarshal(raw, &s) == nil && s == encoded {
			delete(members, name)
		}
	}
	if len(members) == 0 {
		return nil
	}
	return jsontext.Marshal(members)
}

// docsText renders documentation as describe_tool returns it: the text of its tier, once. It adds only the next step
// that the text does not show: how an event is received.
func (w *renderer) docsText(d *host.Docs) string {
	text := d.Text()
	if d.Kind == "event" {
		text += w.nextText(w.steps(d.Next)[:1])
	}
	return strings.TrimSuffix(text, "\n")
}

// foundText renders the results of a search, one line a hit, or the documentation of each.
func (w *renderer) foundText(found *search.Answer, next []nextCall) string {
	var b strings.Builder
	for i := range found.Results {
		r := &found.Results[i]
		if i < len(found.Docs) {
			fmt.Fprintf(&b, "%s\nFound by %s\n", w.docsText(found.Docs[i]), reasonText(r))
			continue
		}
		head := r.Name
		if r.Signature != "" {
			head = r.Typed
		}
		fmt.Fprintf(&b, "%s  %s (%s)\n", head, manifest.CleanLine(r.Brief), reasonText(r))
		if r.Template != nil {
			fmt.Fprintf(&b, "  %s\n", r.Template)
		}
	}
	if more := found.Total - len(found.Results); more > 0 && len(found.Docs) == 0 {
		fmt.Fprintf(&b, "(%d more of %d: raise limit)\n", more, found.Total)
	}
	if len(found.Results) == 0 {
		fmt.Fprintf(&b, "nothing found for %q\n", manifest.CleanLine(found.Query))
	}
	if len(found.LeftOut) > 0 {
		fmt.Fprintf(&b, "Left out for max_tokens: %s\n", strings.Join(found.LeftOut, ", "))
	}
	b.WriteString(w.nextText(next))
	return b.String()
}

// reasonText says why a tool was found, and what speaks against it.
func reasonText(r *search.Result) string {
	words := []string{manifest.CleanLine(r.Why), r.Confidence}
	if r.Effect != "" && r.Effect != manifest.EffectRead {
		words = append(words, r.Effect)
	}
	switch {
	case r.Deprecated:
		words = append(words, "deprecated")
	case r.Experimental:
		words = append(words, "experimental")
	}
	if r.Unsigned {
		words = append(words, "unsigned")
	}
	return strings.Join(words, ", ")
}

// nextText renders steps, one a line: the tool and its arguments.
func (w *renderer) nextText(next []nextCall) string {
	var b strings.Builder
	for _, n := range next {
		arguments, _ := manifest.Marshal(n.Arguments)
		fmt.Fprintf(&b, "Next: %s %s", n.Tool, manifest.EscapeJSON(arguments))
		if len(n.Choose) > 0 {
			fmt.Fprintf(&b, " (choose %s)", strings.Join(n.Choose, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// textResult makes a result of one text.
func textResult(text string, warnings []string) *sdk.CallToolResult {
	return withWarnings(&sdk.CallToolResult{Content: []sdk.Content{textContent(strings.TrimSuffix(text, "\n"))}}, warnings)
}
