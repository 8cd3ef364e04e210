package protocol

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest/jsontext"
)

// Example is one way to call a command. Its parameters are valid against ParamsSchema.
type Example struct {
	Title  string
	Kind   string          // minimal, common or full
	Params json.RawMessage // an object
	Needs  string          // calls that this example needs before it, as ParseCalls reads them
	From   string          // the sources of its values, if they differ from the command's: "/nodeId=NAME; /frameId=NAME"
	Run    *Run            // what happened when it was run; nil if it was not
}

// Run is what happened when an example was run on a prepared page, as ran.tsv has it.
type Run struct {
	Outcome string          // RunVerified, RunFailed, RunHung, RunSkipped or RunUnknown
	Before  json.RawMessage // the calls before it, as lines of a batch; nil for none
	Params  json.RawMessage // the parameters, with references to the results of these calls
	Text    string          // the result, or why there is none
}

// Outcomes of a [Run].
const (
	RunVerified = "verified" // it did what the command is for
	RunFailed   = "failed"   // it ended in an error, or returned nothing
	RunHung     = "hung"     // the page or the browser did not respond any more
	RunSkipped  = "skipped"  // it was not run: it changes the machine, or requires what the browser does not have
	RunUnknown  = "unknown"  // the browser does not know the command
)

// Examples returns the smallest call (required parameters, and one parameter of each group of which Chrome requires
// one), hand-written common calls, and a call with all compatible parameters that are not deprecated.
func (p *Protocol) Examples(c *Command) []Example {
	e := exampleBuilder{p: p}
	return e.examples(c)
}

// Limits of one example: the depth of nested objects, which may be recursive, and the number of values.
const (
	maxExampleDepth  = 6
	maxExampleValues = 1000
)

type exampleBuilder struct {
	p          *Protocol
	onFallback func(owner, name string) // called for a value that no table contains; may be nil
	values     int                      // number of values in the current example
}

func (e *exampleBuilder) examples(c *Command) []Example {
	owner, domain, nodes := c.source.qualified, c.source.domain, c.source.Parameters
	implied := impliedParams(owner, nodes)
	excluded := excludedParams(owner, nodes)
	minimal := e.object(owner, domain, nodes, false, 0,
		func(n *node) bool { return !n.Optional || slices.Contains(implied, n.Name) })
	full := e.object(owner, domain, nodes, true, 0, func(n *node) bool {
		return !n.Optional || !n.Deprecated &&
			!slices.Contains(excluded, n.Name)
	})

	title := "Smallest call"
	if len(nodes) == 0 {
		title = "No parameters"
	}
	list := []Example{{Title: title, Kind: "minimal", Params: minimal}}
	for _, common := range c.examples {
		differs := !bytes.Equal(common.Params, minimal) || common.Needs+common.From != ""
		if differs && e.supports(common.Params, nodes) {
			list = append(list, common)
		}
	}
	if !slices.ContainsFunc(list, func(x Example) bool { return bytes.Equal(x.Params, full) }) {
		list = append(list, Example{Title: "All parameters", Kind: "full", Params: full})
	}
	for i := range list {
		if run, ok := c.runs[list[i].Title]; ok {
			list[i].Run = &run
		}
	}
	return list
}

// supports reports whether this version of the protocol has all the parameters.
func (e *exampleBuilder) supports(params json.RawMessage, nodes []node) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(params, &object) != nil {
		return false
	}
	for name := range object {
		if !slices.ContainsFunc(nodes, func(n node) bool { return n.Name == name }) {
			return false
		}
	}
	return true
}

// object returns JSON for the nodes that keep accepts.
func (e *exampleBuilder) object(owner, domain string, nodes []node, full bool, depth int,
	keep func(*node) bool) []byte {
	if depth == 0 {
		e.values = 0
	}
	b := []byte{'{'}
	for i := range nodes {
		n := &nodes[i]
		if !keep(n) {
			continue
		}
		if e.values++; e.values > maxExampleValues {
			break
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = jsontext.AppendString(b, n.Name)
		b = append(b, ':')
		b = append(b, e.value(owner, domain, n.Name, n, full, depth)...)
	}
	return append(b, '}')
}

// value returns JSON for n, whose name in owner is name.
func (e *exampleBuilder) value(owner, domain, name string, n *node, full bool, depth int) []byte {
	if v, ok := lookup(owner + "." + name); ok {
		return v
	}
	if n.Ref != "" {
		t, ok := e.p.typeRecord(qualify(domain, n.Ref))
		if !ok {
			return e.fallback(owner, name, "string")
		}
		if v, ok := lookup(t.qualified); ok {
			return v
		}
		return e.valueByType(t.qualified, t.domain, name, &t.node, full, depth)
	}
	return e.valueByType(owner, domain, name, n, full, depth)
}

// valueByType returns JSON by the type of n: an enum, an array, an object, or a value that is known by type and name.
func (e *exampleBuilder) valueByType(owner, domain, name string, n *node, full bool, depth int) []byte {
	if len(n.Enum) > 0 {
		return jsontext.AppendString(nil, pickEnum(n.Enum))
	}
	if v, ok := lookup(n.Type + " " + name); ok {
		return v
	}
	switch n.Type {
	case "array":
		if n.Items == nil || depth >= maxExampleDepth {
			return []byte("[]")
		}
		b := append([]byte{'['}, e.value(owner, domain, strings.TrimSuffix(name, "s"), n.Items, full, depth+1)...)
		return append(b, ']')
	case "object":
		return e.object(owner, domain, n.Properties, full, depth+1, func(q *node) bool {
			if !q.Optional {
				return depth < maxExampleDepth
			}
			return full && depth == 0 && !q.Deprecated && e.p.jsonType(domain, q) != "object" &&
				e.p.jsonType(domain, q) != "array"
		})
	}
	return e.fallback(owner, name, n.Type)
}

func (e *exampleBuilder) fallback(owner, name, typed string) []byte {
	if typed == "boolean" {
		return []byte("true")
	}
	if e.onFallback != nil {
		e.onFallback(owner, name)
	}
	if typed == "integer" || typed == "number" {
		return []byte("1")
	}
	return jsontext.AppendString(nil, strings.ToLower(words(name)))
}

// pickEnum returns the first meaningful value.
func pickEnum(enum []string) string {
	for _, v := range enum {
		switch v {
		case "none", "default", "unknown", "invalid", "other", "auto", "", "Unknown", "None", "Default", "UNKNOWN",
			"Unspecified":
			continue
		}
		return v
	}
	return enum[0]
}

// lookup returns the hand-written value of a key. A live protocol uses the values of the embedded one.
func lookup(key string) ([]byte, bool) {
	r, ok := Embedded().find(kindValue, key)
	if !ok {
		return nil, false
	}
	r.str()
	return []byte(r.str()), true
}

// implied lists the results of impliedParams for commands that do not follow the rule.
var implied = table{
	{"Animation.seekAnimations", "currentTime"},
	{"Autofill.trigger", "card"},
	{"Debugger.restartFrame", "mode"},
	{"Browser.setContentsSize", "width height"},
	{"Browser.setDownloadBehavior", "downloadPath"},
	{"Page.setDownloadBehavior", "downloadPath"},
	{"CSS.trackComputedStyleUpdatesForNode", ""}, // a call without a node ends the tracking
	{"Debugger.setBreakpointByUrl", "url"},
	{"Network.setCookie", "url"},
	{"Network.deleteCookies", "url"},
	{"DigitalCredentials.setVirtualWalletBehavior", "protocol response"},
	{"Input.dispatchKeyEvent", "key"},
	{"Input.dispatchMouseEvent", "button"},
	{"Input.synthesizeScrollGesture", "yDistance"},
	{"Network.loadNetworkResource", "frameId"},
	{"Storage.getStorageKey", "frameId"},
	{"Overlay.setInspectMode", "highlightConfig"},
	{"PWA.changeAppUserSettings", "displayMode"},
	{"Runtime.callFunctionOn", "objectId"},
	{"Target.setAutoAttach", "flatten"},
	{"Target.detachFromTarget", "sessionId"},
	{"Target.sendMessageToTarget", "sessionId"},
}

// impliedParams returns the optional parameters that the smallest call requires nevertheless: Chrome requires one of
// several, or rejects a call without them, or the call would do nothing. (Found by sending every example to Chromium
// 156.)
func impliedParams(command string, nodes []node) []string {
	if names, known := implied.find(command); known {
		return names
	}
	for _, group := range oneOf[:2] {
		present := presentOf(group, nodes, func(n node) bool { return n.Optional && n.Name != "selector" })
		if len(present) > 1 {
			return present[:1]
		}
	}
	return nil
}

// presentOf returns the names of a group that belong to nodes for which counts returns true.
func presentOf(group []string, nodes []node, counts func(node) bool) []string {
	return slices.DeleteFunc(slices.Clone(group), func(name string) bool {
		return !slices.ContainsFunc(nodes, func(n node) bool { return n.Name == name && counts(n) })
	})
}

// excluded lists the results of excludedParams for commands that do not follow the rule.
var excluded = table{
	{"Autofill.trigger", "address"},
	{"CSS.resolveValues", "pseudoType pseudoIdentifier"}, // for a pseudo element, which few elements have
	{"Debugger.setBreakpointByUrl", "urlRegex scriptHash"},
	{"Fetch.fulfillRequest", "binaryResponseHeaders"},
	{"Fetch.continueResponse", "binaryResponseHeaders"},
	{"Input.dispatchMouseEvent", "deltaX deltaY"},         // apply to the wheel, not to a button
	{"Input.emulateTouchFromMouseEvent", "deltaX deltaY"}, // apply to the wheel, not to a button
	{"Runtime.callFunctionOn", "executionContextId uniqueContextId serializationOptions"},
	{"Runtime.evaluate", "uniqueContextId serializationOptions"},
	{"Animation.seekAnimations", "currentTimes"},
	{"Page.reload", "loaderId"}, // only valid for the current page
	{"Runtime.addBinding", "executionContextId"},
	{"Target.createTarget", "enableBeginFrameControl forTab hidden"},
	{"Tracing.start", "perfettoConfig"},
}

// excludedParams returns the parameters that a call with all parameters leaves out, because they exclude others.
func excludedParams(command string, nodes []node) []string {
	if names, known := excluded.find(command); known {
		return names
	}
	var out []string
	for _, group := range oneOf[:2] {
		if present := presentOf(group, nodes, func(node) bool { return true }); len(present) > 0 {
			out = append(out, present[1:]...)
		}
	}
	return out
}
