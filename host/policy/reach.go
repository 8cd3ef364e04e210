package policy

import "strings"

// outsideTools are the tools of cdp that reach outside the page that a plugin works in: the browser as a whole, other
// targets, the machine, files, downloads, and what other pages have stored. A wildcard in a tool: grant never includes
// them; each must be named. Because Chrome's protocol gains commands over time, whole groups are listed where a group
// is about such things.
//
// All names are in lower case. Those that end in a dot are groups.
var outsideTools = []string{
	// The browser, its other targets, its profile, the machine on which it runs.
	"cdp.browser.", "cdp.target.", "cdp.systeminfo.", "cdp.tethering.", "cdp.extensions.", "cdp.pwa.",
	"cdp.filesystem.", "cdp.cast.", "cdp.deviceaccess.", "cdp.autofill.", "cdp.tracing.", "cdp.memory.",
	"cdp.bluetoothemulation.", "cdp.smartcardemulation.",
	// The tools of cdp itself that choose a program, a profile or a page that is not the plugin's.
	"cdp.open", "cdp.close", "cdp.targets", "cdp.activate",
	// Files, also those dropped on a page, and downloads.
	"cdp.dom.setfileinputfiles", "cdp.input.dispatchdragevent", "cdp.dom.getfileinfo", "cdp.page.setdownloadbehavior",
	"cdp.page.getspellcheckcustomdictionary",
	// The screens, which all pages of a browser share.
	"cdp.emulation.addscreen", "cdp.emulation.getscreeninfos", "cdp.emulation.removescreen",
	"cdp.emulation.setprimaryscreen",
	"cdp.emulation.updatescreen", "cdp.page.startscreenrecording",
	// Cookies and storage of any site, and loading with the browser's privileges.
	"cdp.storage.", "cdp.network.getcookies", "cdp.network.getallcookies", "cdp.network.setcookie",
	"cdp.network.setcookies", "cdp.network.deletecookies", "cdp.network.clearbrowsercookies",
	"cdp.network.clearbrowsercache", "cdp.network.loadnetworkresource", "cdp.page.deletecookie",
}

// outsidePage reports whether the tool of this qualified name, in lower case, reaches outside a page.
func outsidePage(name string) bool {
	for _, o := range outsideTools {
		if name == o || strings.HasSuffix(o, ".") && strings.HasPrefix(name, o) {
			return true
		}
	}
	return false
}

// onlyOutsidePage reports whether every tool whose name begins with prefix reaches outside a page.
func onlyOutsidePage(prefix string) bool {
	for _, o := range outsideTools {
		if strings.HasSuffix(o, ".") && strings.HasPrefix(prefix, o) {
			return true
		}
	}
	return false
}
