package redact

import "strings"

// UntrustedMark is the member of a schema that says that a text of a result was written by neither the tool nor its
// caller, such as the text of a web page: true, or UntrustedLong for a value of any type, whose short texts callers use
// as they are.
const (
	UntrustedMark = "x-untrusted"
	UntrustedLong = "long"
)

// longText is the size in bytes above which a text of one line is more than a name or a title.
const longText = 100

// Mark returns a value with its untrusted texts inside a boundary of 8 digits. It finds them by the properties and
// items of the schema.
func Mark(value, schema any, boundary string) any {
	of, _ := schema.(map[string]any)
	long := of[UntrustedMark] == UntrustedLong
	switch v := value.(type) {
	case string:
		if of[UntrustedMark] == true && v != "" || long && (len(v) > longText || strings.Contains(v, "\n")) {
			v = "<page " + boundary + ">\n" + v + "\n</page " + boundary + ">"
		}
		return v
	case []any:
		items := of["items"]
		if long {
			items = of
		}
		for i := range v {
			v[i] = Mark(v[i], items, boundary)
		}
	case map[string]any:
		properties, _ := of["properties"].(map[string]any)
		for name := range v {
			inner := properties[name]
			if long && inner == nil {
				inner = of
			}
			v[name] = Mark(v[name], inner, boundary)
		}
	}
	return value
}

// Unmarked returns a text of a result as it was before [Mark]. Any other text stays as it is.
func Unmarked(text string) string {
	head, rest, _ := strings.Cut(text, "\n")
	end, isMarked := strings.CutPrefix(head, "<page ")
	inner, isWhole := strings.CutSuffix(rest, "\n</page "+end)
	if !isMarked || !isWhole || len(end) != 9 || strings.Trim(end[:8], "0123456789")+end[8:] != ">" {
		return text
	}
	return inner
}
