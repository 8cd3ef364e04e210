package frame

import (
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Paths matches the paths of this machine that clients over HTTP must not see. Nil hides none.
type Paths struct{ pattern *regexp.Regexp }

// NewPaths returns the paths that begin with one of the prefixes.
func NewPaths(prefixes []string) *Paths {
	var all []string
	for _, p := range prefixes {
		if len(p) > 1 { // neither "" nor the root
			all = append(all, regexp.QuoteMeta(p))
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return &Paths{regexp.MustCompile("(?:" + strings.Join(all, "|") + `)[^\s"'\\:,;)]*`)}
}

// Hide shortens the paths in errors and warnings to their last element. Records keep whole paths.
func (p *Paths) Hide(result sdk.Result, err error) (sdk.Result, error) {
	if p == nil {
		return result, err
	}
	short := func(text string) string { return p.pattern.ReplaceAllStringFunc(text, path.Base) }
	if called, is := result.(*sdk.CallToolResult); is && called != nil {
		for _, c := range called.Content {
			if text, is := c.(*sdk.TextContent); is && (called.IsError || strings.HasPrefix(text.Text, "warning: ")) {
				text.Text = short(text.Text)
			}
		}
	}
	if err == nil || !p.pattern.MatchString(err.Error()) {
		return result, err
	}
	hidden := &jsonrpc.Error{Message: short(err.Error())}
	if e, is := errors.AsType[*jsonrpc.Error](err); is {
		hidden.Code, hidden.Message, hidden.Data = e.Code, short(e.Message), []byte(short(string(e.Data)))
	}
	return result, hidden
}
