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

// readsWithout maps a tool to the parameter without which a call of it only shows something.
var readsWithout = map[string]string{"cookies": "value", "dialog": "action", "downloads": "save", "route": "action",
	"storage": "value"}

// effectOf returns the effect of a call. A tool that can set something may be called only to show it, which is a
// read.
func effectOf(j *job.Job) string {
	var q map[string]json.RawMessage
	if json.Unmarshal(j.Params, &q) != nil {
		return manifest.EffectDestructive // at least the effect of the tool
	}
	name, sets := readsWithout[j.Tool]
	if sets && !given(q, name) || j.Tool == "tabs" && (!given(q, "action") || string(q["action"]) == `"list"`) {
		return manifest.EffectRead
	}
	return manifest.EffectDestructive
}

func given(params map[string]json.RawMessage, name string) bool {
	value, ok := params[name]
	return ok && string(value) != "null"
}

// includes lists, for each tool, the tools of the plugin cdp that do a part of its work. The key is the parameter
// that asks for this part, or the parameter and its value, or "" for every call. A rule that denies one of these
// tools by its name denies such a call, too.
var includes = map[string]map[string][]string{
	"open": {"": {"open"}},
	"go": {"to=back": {"Page.navigateToHistoryEntry"}, "to=forward": {"Page.navigateToHistoryEntry"},
		"to=reload": {"Page.reload"}},
	"tabs":       {"": {"targets"}, "action=activate": {"activate"}, "action=close": {"close"}},
	"click":      {"": {"input"}},
	"fill":       {"": {"input"}, "secret": {"type"}},
	"type":       {"": {"input"}},
	"press":      {"": {"input"}},
	"select":     {"": {"input"}},
	"check":      {"": {"input"}},
	"hover":      {"": {"input"}},
	"drag":       {"": {"input"}},
	"scroll":     {"": {"input"}},
	"wait":       {"expression": {"Runtime.evaluate"}},
	"screenshot": {"": {"Page.captureScreenshot"}},
	"compare":    {"": {"Page.captureScreenshot"}},
	"evaluate":   {"": {"Runtime.evaluate"}},
	"requests": {"": {"events"}, "id": {"Network.getResponseBody", "Network.getRequestPostData"},
		"bodies": {"Network.getResponseBody", "Network.getRequestPostData"}},
	"console":   {"": {"events", "Network.loadNetworkResource"}},
	"dialog":    {"action": {"Page.handleJavaScriptDialog"}},
	"record":    {"": {"Tracing.start", "Tracing.end", "IO.read"}},
	"downloads": {"": {"events"}},
	"cookies":   {"": {"Network.getCookies"}, "value": {"Network.setCookie"}},
	"state":     {"": {"state"}},
	"route":     {"": {"route"}},
	"emulate": {
		"device": {"Emulation.setDeviceMetricsOverride", "Emulation.setTouchEmulationEnabled",
			"Emulation.setUserAgentOverride"},
		"dark": {"Emulation.setEmulatedMedia"}, "locale": {"Emulation.setLocaleOverride"},
		"timezone":    {"Emulation.setTimezoneOverride"},
		"geolocation": {"Emulation.setGeolocationOverride", "Browser.setPermission"},
		"headers":     {"Network.setExtraHTTPHeaders"}, "permissions": {"Browser.setPermission"},
		"network": {"Network.emulateNetworkConditionsByRule", "Network.overrideNetworkState"},
		"cpu":     {"Emulation.setCPUThrottlingRate"},
		"reset": {"Emulation.clearDeviceMetricsOverride", "Emulation.clearGeolocationOverride",
			"Browser.resetPermissions"},
	},
}

// includedIn returns the tools that a call includes, by their qualified names.
func includedIn(j *job.Job) (names []string) {
	var q map[string]json.RawMessage
	_ = json.Unmarshal(j.Params, &q)
	for when, of := range includes[j.Tool] {
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
