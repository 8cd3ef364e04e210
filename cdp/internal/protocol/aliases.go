package protocol

// aliasesOf returns the names that callers use for a parameter of a command, for "x-aliases" in its schema. The table
// is reviewed: an alias has to mean the same in every command that has the parameter, and no command may have a
// parameter of that name beside it, which a test holds.
func aliasesOf(param string) []string {
	switch param {
	case "expression":
		return []string{"script", "code", "js", "javascript", "source", "expr", "eval"}
	case "functionDeclaration":
		return []string{"function", "fn", "func", "script", "code"}
	case "url":
		return []string{"uri", "href", "link", "address", "location"}
	case "urls":
		return []string{"uris", "links"}
	case "selector":
		return []string{"css", "cssSelector", "query"}
	case "nodeId":
		return []string{"node"}
	case "frameId":
		return []string{"frame"}
	case "targetId":
		return []string{"page", "tab"}
	case "requestId":
		return []string{"request"}
	case "scriptId":
		return []string{"script"}
	case "styleSheetId":
		return []string{"styleSheet", "sheet"}
	case "objectId":
		return []string{"object"}
	case "outerHTML":
		return []string{"html"}
	case "userAgent":
		return []string{"ua", "agent"}
	case "timezoneId":
		return []string{"timezone", "tz"}
	case "format":
		return []string{"imageFormat"}
	case "latitude":
		return []string{"lat"}
	case "longitude":
		return []string{"lng", "lon"}
	case "returnByValue":
		return []string{"byValue"}
	case "awaitPromise":
		return []string{"await"}
	case "ignoreCache":
		return []string{"noCache", "hard"}
	case "downloadPath":
		return []string{"folder", "directory"}
	}
	return nil
}
