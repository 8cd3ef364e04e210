package page

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/job"
	"github.com/parley-tools/parley/manifest"
)

// effectOf returns the effect of a call. A tool that can set something may be called only to show it, which is a
// read.
func effectOf(j *job.Job) string {
	var q map[string]json.RawMessage
	if json.Unmarshal(j.Params, &q) != nil {
		return manifest.EffectDestructive // at least the effect of the tool
	}
	name, value, hasValue := strings.Cut(tools.Verb(j.Tool).ReadsWithout, "=")
	if name != "" && (!given(q, name) || hasValue && string(q[name]) == `"`+value+`"`) {
		return manifest.EffectRead
	}
	return manifest.EffectDestructive
}

func given(params map[string]json.RawMessage, name string) bool {
	value, ok := params[name]
	return ok && string(value) != "null"
}

// includedIn returns the tools that a call includes, by their qualified names. A rule that denies one of them by its
// name denies the call, too.
func includedIn(j *job.Job) (names []string) {
	var q map[string]json.RawMessage
	_ = json.Unmarshal(j.Params, &q)
	for when, of := range tools.Verb(j.Tool).Includes {
		name, value, exact := strings.Cut(when, "=")
		if when == "" || given(q, name) && (!exact || string(q[name]) == `"`+value+`"`) {
			for _, tool := range of {
				names = append(names, cdp.Name+"."+tool)
			}
		}
	}
	slices.Sort(names) // the same call is denied for the same reason
	return names
}

// checkPaste refuses a press of a key that pastes to a plugin that was granted the tool only by a wildcard.
func checkPaste(r *host.Request, tool string, params map[string]json.RawMessage) error {
	var key string
	if tool != "press" || json.Unmarshal(params["key"], &key) != nil {
		return nil
	}
	keys := strings.FieldsFunc(strings.ToLower(key), func(c rune) bool { return c == '+' || c == ',' })
	has := func(any ...string) bool {
		return slices.ContainsFunc(any, func(key string) bool { return slices.Contains(keys, key) })
	}
	if has("v") && has("control", "ctrl", "meta", "cmd", "command") || has("insert") && has("shift") {
		return cdp.CheckPaste(r, Name+"."+tool)
	}
	return nil
}
