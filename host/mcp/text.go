package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/manifest"
)

// docsText renders documentation as describe_tool returns it: the text of its tier, once. Of the next steps it has only
// those that the text does not show: how an event is received.
func (w *renderer) docsText(d *host.Docs) string {
	text := d.Text()
	if d.Kind == "event" {
		text += w.nextText(w.steps(d.Next)[:1])
	}
	return strings.TrimSuffix(text, "\n")
}

// withTextSize returns a context for documentation that is sent as docsText.
func (w *renderer) withTextSize(ctx context.Context) context.Context {
	return host.WithDocsSize(ctx, func(d *host.Docs, _ bool) int { return len(w.docsText(d)) })
}

// foundText renders the results of a search, one line a hit, or the documentation of each.
func (w *renderer) foundText(found *search.Answer, next []nextCall) string {
	var b strings.Builder
	for i := range found.Results {
		r := &found.Results[i]
		if i < len(found.Docs) {
			fmt.Fprintf(&b, "%s\nFound by %s\n", w.docsText(found.Docs[i]), reasonText(r))
			continue
		}
		head := r.Name
		if r.Signature != "" {
			head = r.Typed
		}
		fmt.Fprintf(&b, "%s  %s (%s)\n", head, manifest.CleanLine(r.Brief), reasonText(r))
	}
	if len(found.Results) == 0 {
		fmt.Fprintf(&b, "nothing found for %q\n", manifest.CleanLine(found.Query))
	}
	if len(found.LeftOut) > 0 {
		fmt.Fprintf(&b, "Left out for max_tokens: %s\n", strings.Join(found.LeftOut, ", "))
	}
	b.WriteString(w.nextText(next))
	return b.String()
}

// reasonText says why a tool was found, and what speaks against it.
func reasonText(r *host.SearchResult) string {
	words := []string{manifest.CleanLine(r.Why), r.Confidence}
	if r.Effect != "" && r.Effect != manifest.EffectRead {
		words = append(words, r.Effect)
	}
	switch {
	case r.Deprecated:
		words = append(words, "deprecated")
	case r.Experimental:
		words = append(words, "experimental")
	}
	if r.Unsigned {
		words = append(words, "unsigned")
	}
	return strings.Join(words, ", ")
}

// nextText renders steps, one a line: the tool and its arguments.
func (w *renderer) nextText(next []nextCall) string {
	var b strings.Builder
	for _, n := range next {
		arguments, _ := manifest.Marshal(n.Arguments)
		fmt.Fprintf(&b, "Next: %s %s", n.Tool, manifest.EscapeJSON(arguments))
		if len(n.Choose) > 0 {
			fmt.Fprintf(&b, " (choose %s)", strings.Join(n.Choose, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// textResult makes a result of one text.
func textResult(text string, warnings []string) *sdk.CallToolResult {
	return withWarnings(&sdk.CallToolResult{Content: []sdk.Content{textContent(strings.TrimSuffix(text, "\n"))}}, warnings)
}
