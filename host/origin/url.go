package origin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
	"github.com/parley-tools/parley/manifest/schema"
	"github.com/parley-tools/parley/manifest/spelling"
)

// VisitTexts replaces the text at a pointer, or each text of the list there, by what visit returns. If the pointer
// leads through a list, it visits all elements.
func VisitTexts(tool string, params any, pointer string, visit func(string) (string, error)) (any, error) {
	tokens, ok := jsontext.SplitPointer(pointer)
	if !ok {
		return nil, host.Errorf(host.InvalidPlugin, "%s declares %s, which is not a JSON pointer", tool,
			host.Printable(pointer))
	}
	var walk func(value any, tokens []string) (any, error)
	walk = func(value any, tokens []string) (any, error) {
		var err error
		switch v := value.(type) {
		case []any:
			for i := range v {
				if v[i], err = walk(v[i], tokens); err != nil {
					return nil, err
				}
			}
			return v, nil
		case map[string]any:
			if len(tokens) == 0 {
				break
			}
			if _, given := v[tokens[0]]; given {
				v[tokens[0]], err = walk(v[tokens[0]], tokens[1:])
			}
			return v, err
		case string:
			if len(tokens) == 0 {
				return visit(v)
			}
		case nil:
			return nil, nil
		}
		return nil, host.Errorf(host.InvalidArgs, "%s: %s must be a text or a list of texts", tool, host.Printable(pointer))
	}
	return walk(params, tokens)
}

// schemes are the schemes of URLs that Chrome can load.
var schemes = []string{"http", "https", "about", "data", "file", "blob", "chrome", "chrome-extension", "devtools",
	"filesystem", "javascript", "view-source"}

// CheckURLs rejects URLs that Chrome would not load, in the parameters that a tool declares as URLs, and suggests what
// may have been meant.
func CheckURLs(params json.RawMessage, pointers []string) error {
	if len(pointers) == 0 {
		return nil
	}
	value, err := jsontext.Decode(params, jsontext.Limits{Bytes: host.MaxParams})
	if err != nil {
		return nil // validation reports this
	}
	var e *host.Error
	for _, pointer := range pointers {
		_, err := VisitTexts("", value, pointer, func(given string) (string, error) {
			meant := meantURL(given)
			if given == "" || loadable(given) || e != nil && e.Corrected == nil {
				return given, nil
			}
			printed := manifest.CleanLine(given)
			e = host.Errorf(host.InvalidURL, "%q is not a valid URL; expected an absolute URL such as https://example.com/",
				printed)
			e.Details = []host.Detail{{Parameter: pointer, Keyword: "format", Provided: fmt.Sprintf("string %q", printed),
				Expected: "an absolute URL with a scheme"}}
			if meant != "" {
				e.Corrected, e.Details[0].Suggestion = json.RawMessage("{}"), step.TextSuggestion(meant)
				e.Changes = []schema.Change{{From: pointer, To: pointer, How: schema.Coerced}}
			}
			return meant, nil
		})
		if err != nil {
			return nil // not a text, which validation reports
		}
	}
	if e == nil {
		return nil
	} else if e.Corrected != nil {
		e.Corrected = jsontext.Marshal(value)
	}
	return e
}

// loadable reports whether Chrome can load a URL.
func loadable(given string) bool {
	u, err := url.Parse(strings.TrimSpace(given))
	if err != nil || !slices.Contains(schemes, strings.ToLower(u.Scheme)) || u.Host+u.Opaque+u.Path == "" {
		return false
	}
	return u.Scheme != "http" && u.Scheme != "https" || u.Host != ""
}

// meantURL returns the URL that was probably meant: the given one with a scheme, or with its scheme spelt right. It
// returns "" where that is not clear.
func meantURL(given string) string {
	if strings.ContainsAny(given, " \t\n") {
		return ""
	}
	scheme, rest, hasScheme := strings.Cut(given, ":")
	lower := strings.ToLower(given)
	host, _, _ := strings.Cut(strings.TrimPrefix(lower, "//"), "/")
	meant := ""
	switch near := spelling.Nearest(scheme, []string{"http", "https"}, 1); {
	case strings.HasPrefix(lower, "localhost") || strings.HasPrefix(host, "127."):
		meant = "http://" + given
	case strings.HasPrefix(given, "//") && strings.Contains(host, "."):
		meant = "https:" + given
	case hasScheme && len(near) > 0 && strings.HasPrefix(rest, "/") && strings.Trim(rest, "/") != "":
		meant = near[0].Name + "://" + strings.TrimLeft(rest, "/")
	case !strings.HasPrefix(given, "/") && strings.Contains(host, "."):
		meant = "https://" + given
	}
	u, err := url.Parse(meant)
	if err != nil || meant == "" || u.Host == "" || u.User != nil { // as in mailto:ada@example.com
		return ""
	}
	return u.String()
}
