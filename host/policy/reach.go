package policy

import "strings"

// outsideTools are the tools of cdp that reach beyond the page that a plugin works in: the browser as a
// whole, other targets, the machine, files, downloads, and what other pages have stored. A wildcard in
// a plugin's tool: grants never gives them; each must be named. Who adds a command to Chrome's protocol
// does not ask us, so whole groups stand here where a group is about such things. All in lower case.
//
// Entries that end in a dot are groups.
var outsideTools = []string{
	// The browser, its other targets, its profile, the machine that it runs on.
	"cdp.browser.", "cdp.target.", "cdp.systeminfo.", "cdp.tethering.", "cdp.extensions.", "cdp.pwa.",
	"cdp.filesystem.", "cdp.cast.", "cdp.deviceaccess.", "cdp.autofill.", "cdp.tracing.", "cdp.memory.",
	"cdp.bluetoothemulation.", "cdp.smartcardemulation.",
	// The browser's own verbs that choose a program, a profile or a page that is not the plugin's.
	"cdp.open", "cdp.close", "cdp.targets", "cdp.activate",
	// Files, also those that are dropped on a page, and downloads.
	"cdp.dom.setfileinputfiles", "cdp.input.dispatchdragevent", "cdp.dom.getfileinfo", "cdp.page.setdownloadbehavior",
	"cdp.page.getspellcheckcustomdictionary",
	// The screens, which all pages of a browser have in common.
	"cdp.emulation.addscreen", "cdp.emulation.getscreeninfos", "cdp.emulation.removescreen", "cdp.emulation.setprimaryscreen",
	"cdp.emulation.updatescreen", "cdp.page.startscreenrecording",
	// Cookies and storage of any site, and loading with the browser's own reach.
	"cdp.storage.", "cdp.network.getcookies", "cdp.network.getallcookies", "cdp.network.setcookie",
	"cdp.network.setcookies", "cdp.network.deletecookies", "cdp.network.clearbrowsercookies",
	"cdp.network.clearbrowsercache", "cdp.network.loadnetworkresource", "cdp.page.deletecookie",
}

// outsidePage tells whether the tool of this qualified name, in lower case, reaches outside a page.
func outsidePage(name string) bool {
	for _, o := range outsideTools {
		if name == o || strings.HasSuffix(o, ".") && strings.HasPrefix(name, o) {
			return true
		}
	}
	return false
}

// onlyOutsidePage tells whether every tool whose name begins with prefix reaches outside a page.
func onlyOutsidePage(prefix string) bool {
	for _, o := range outsideTools {
		if strings.HasSuffix(o, ".") && strings.HasPrefix(prefix, o) {
			return true
		}
	}
	return false
}
