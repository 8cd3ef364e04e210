package mcp

// CommonTools returns the names in tools/list of the tools that progressive mode lists without configuration.
func CommonTools() []string {
	names := make([]string, len(defaultPinned))
	for i, name := range defaultPinned {
		names[i] = ListedName(name)
	}
	return names
}

// defaultPinned are the tools that progressive mode lists without configuration: the shipped verbs that agents use
// most. Those that are not installed are left out.
var defaultPinned = []string{
	"cdp.open", "cdp.events", "cdp.Page.navigate", "cdp.Page.captureScreenshot", "cdp.Runtime.evaluate",
	"cdp.Input.dispatchMouseEvent", "cdp.Input.insertText", "cdp.Network.getCookies",
}
