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
	"page.open", "page.snapshot", "page.text", "page.find", "page.click", "page.fill", "page.press", "page.do",
	"page.wait", "page.screenshot", "page.evaluate", "page.requests", "page.console",
}
