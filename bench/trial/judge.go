package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// disappoints returns why the result of a call that succeeded is not what the command is for, "" if it is. Ids are
// told by the names of their fields: a manifest has no types of them.
func disappoints(e *example) string {
	var result map[string]json.RawMessage
	if len(e.result) > 0 && json.Unmarshal(e.result, &result) != nil {
		return "the result is not an object"
	}
	for _, field := range manifest.Params(e.command.Returns) {
		value, given := result[field.Name]
		switch {
		case !given && field.Required:
			return "the result has no " + field.Name
		case string(value) == `"0"` && strings.HasSuffix(field.Name, "ObjectId"):
			return field.Name + " is 0: the object has no id"
		case string(value) == "0" && strings.HasSuffix(strings.ToLower(field.Name), "nodeid"):
			return field.Name + " is 0: nothing was found"
		case string(value) == "[]" && field.Required && !mayBeEmpty(e.command.Name):
			return field.Name + " is empty"
		}
	}
	return ""
}

// mayBeEmpty reports whether a result of a command is right without items: the page has none of them.
func mayBeEmpty(command string) bool { return slices.Contains(emptyResults, command) }

var emptyResults = []string{
	"Debugger.restartFrame", "DOM.forceShowPopover", "Runtime.globalLexicalScopeNames",
	"Storage.runBounceTrackingMitigations",
	"Audits.checkFormsIssues", "CrashReportContext.getEntries", "Extensions.getExtensions", "Page.getAppManifest",
	"Page.getOriginTrials", "Storage.getCookies", "Storage.getTrustTokens",
}

// skipReason returns why an example of a command is not run, "" if it is.
func skipReason(c *manifest.Tool) string {
	return skips[c.Name]
}

var skips = map[string]string{
	"Browser.close":                 "ends the browser",
	"Browser.crash":                 "ends the browser",
	"Browser.crashGpuProcess":       "ends a process of the browser",
	"Browser.getBrowserCommandLine": "requires the launch flag --enable-automation",
	"Cast.enable":                   "requires a device that shows what is cast",
	"Cast.setSinkToUse":             "requires a device that shows what is cast",
	"Cast.startDesktopMirroring":    "requires a device that shows what is cast",
	"Cast.startTabMirroring":        "requires a device that shows what is cast",
	"Cast.stopCasting":              "requires a device that shows what is cast",
	"DeviceAccess.cancelPrompt":     "requires a device that the page asks for",
	"DeviceAccess.selectPrompt":     "requires a device that the page asks for",
	"FedCm.clickDialogButton":       "requires a dialog of an identity provider",
	"FedCm.dismissDialog":           "requires a dialog of an identity provider",
	"FedCm.openUrl":                 "requires a dialog of an identity provider",
	"FedCm.selectAccount":           "requires a dialog of an identity provider",
	"Page.crash":                    "crashes the page",
	"Page.waitForDebugger":          "stops the page before it loads",
	"Target.autoAttachRelated":      "stops Parley from attaching to new pages",
	"Extensions.getExtensions":      "requires the launch flag --enable-unsafe-extension-debugging",
	"Extensions.clearStorageItems":  "requires an extension",
	"Extensions.getStorageItems":    "requires an extension",
	"Extensions.loadUnpacked":       "requires an extension",
	"Extensions.removeStorageItems": "requires an extension",
	"Extensions.setStorageItems":    "requires an extension",
	"Extensions.triggerAction":      "requires an extension",
	"Extensions.uninstall":          "requires an extension",
	"PWA.changeAppUserSettings":     "changes the machine: requires an installed app",
	"PWA.getOsAppState":             "requires an installed app",
	"PWA.install":                   "changes the machine: installs an app",
	"PWA.launch":                    "changes the machine: requires an installed app",
	"PWA.launchFilesInApp":          "changes the machine: requires an installed app",
	"PWA.openCurrentPageInApp":      "changes the machine: requires an installed app",
	"PWA.uninstall":                 "changes the machine: requires an installed app",
	"Tethering.bind":                "changes the machine: opens a port",
	"Tethering.unbind":              "changes the machine: opens a port",
}
