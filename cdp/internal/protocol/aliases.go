package protocol

import "strings"

// aliases are the names that callers use for parameters of commands. The table is reviewed, and a test checks it: an
// alias must mean the same in every command that has the parameter, and no such command may have another parameter of
// that name.
var aliases = table{
	{"expression", "script code js javascript source expr eval"},
	{"functionDeclaration", "function fn func script code"},
	{"url", "uri href link address location"},
	{"urls", "uris links"},
	{"selector", "css cssSelector query"},
	{"nodeId", "node"},
	{"frameId", "frame"},
	{"targetId", "page tab"},
	{"requestId", "request"},
	{"scriptId", "script"},
	{"styleSheetId", "styleSheet sheet"},
	{"objectId", "object"},
	{"outerHTML", "html"},
	{"userAgent", "ua agent"},
	{"timezoneId", "timezone tz"},
	{"format", "imageFormat"},
	{"latitude", "lat"},
	{"longitude", "lng lon"},
	{"returnByValue", "byValue"},
	{"awaitPromise", "await"},
	{"ignoreCache", "noCache hard"},
	{"downloadPath", "folder directory"},
}

// aliasesOf returns the names that callers use for a parameter of a command, for "x-aliases" in its schema.
func aliasesOf(param string) []string {
	names, _ := aliases.find(param)
	return names
}

// table maps names to lists of names. Unlike a map it costs nothing at the start of a process.
type table []struct{ name, list string }

func (t table) find(name string) (list []string, known bool) {
	for _, row := range t {
		if row.name == name {
			return strings.Fields(row.list), true
		}
	}
	return nil, false
}
