package advice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// NextAfterDescribe returns the steps that documentation offers, such as a call of its first example.
func NextAfterDescribe(d *host.Docs) (next []step.Step) {
	switch {
	case d.Kind == "event":
		next = append(next, step.Step{Op: step.OpListen, Tool: d.Plugin, Query: d.Tool})
	case d.Kind == "" && len(d.Examples) > 0:
		if len(d.Examples[0].Params) <= maxExampleStep || d.Tier == manifest.Tier3 {
			next = append(next, ExampleStep(d.ToolDocs, 0))
		}
	case d.Kind == "":
		next = append(next, step.Describe(d.Name, 0))
	}
	if d.Tier == manifest.Tier2 {
		next = append(next, step.Describe(d.Name, manifest.Tier3))
	}
	if len(next) == 0 {
		next = append(next, host.Address{Plugin: d.Plugin, Group: d.Group}.ListStep())
	}
	return next
}

type maxTokensKey struct{}

// WithMaxTokens returns a context in which [DescribeWithin] returns the best documentation that stays within a number
// of tokens, as the front end sends it; see [host.WithDocsSize]. The documentation says what is left out. 0 means that
// there is no limit.
func WithMaxTokens(ctx context.Context, tokens int) context.Context {
	return context.WithValue(ctx, maxTokensKey{}, tokens)
}

// maxListed is how many tools of a plugin or group are listed at most.
const maxListed = 60

// ListText renders what a plugin or group has: its groups with their numbers of tools, and one line for each tool.
// Tools that exceed maxTokens, unless it is 0, are only counted.
func ListText(at host.Address, maxTokens int) (string, error) {
	tools, err := at.Provider.Lines(at.Group)
	groups, failed := at.Provider.Groups()
	text := ""
	if at.Group == "" && len(groups) > 0 {
		all := lists.Map(groups, func(g host.GroupLine) string { return fmt.Sprintf("%s %d", g.Name, g.Tools) })
		text = fmt.Sprintf("%s of %s with their number of tools: %s\n", manifest.Plural(len(groups), "group"), at.Plugin,
			strings.Join(all, ", "))
	}
	for i, t := range tools {
		line := fmt.Sprintf("%s.%s  %s\n", at.Plugin, t.Name, manifest.CleanLine(t.Brief))
		if i == maxListed || maxTokens > 0 && manifest.Tokens(text+line) > maxTokens {
			text += fmt.Sprintf("(%d more of %d: search_tools finds them)", len(tools)-i, len(tools))
			break
		}
		text += line
	}
	return strings.TrimSuffix(text, "\n"), errors.Join(err, failed)
}

// DescribeWithin returns the documentation of a tool at a tier, or the best part of it that stays within the limit of
// the context.
func DescribeWithin(ctx context.Context, a host.Address, t *manifest.Tool, tier int) (*host.Docs, error) {
	d, err := a.Describe(t, tier)
	limit, _ := ctx.Value(maxTokensKey{}).(int)
	if err != nil || limit == 0 {
		return d, err
	}
	fits := func() bool {
		d.Next = NextAfterDescribe(d)
		return host.DocsTokens(ctx, d, false) <= limit
	}
	if fits() {
		return d, nil
	}
	left := []string{}
	if tier == manifest.Tier3 {
		left = append(left, "tier 3")
		if d, err = a.Describe(t, manifest.Tier2); err != nil {
			return nil, err
		}
		if d.LeftOut = left; fits() {
			return d, nil
		}
	}
	for _, part := range d.Reductions() {
		if !part.Remove() {
			continue
		}
		left = append(left, part.Name)
		if d.LeftOut = left; fits() {
			return d, nil
		}
	}
	if d, err = a.Describe(t, manifest.Tier1); err != nil {
		return nil, err
	}
	if tier > manifest.Tier1 {
		d.LeftOut = []string{"all but tier 1"}
	}
	return d, nil
}

// maxExampleStep is the maximum size of the parameters of an example that tier 2 repeats as a next step, in bytes. Tier
// 3 always repeats the example, because it has no other step.
const maxExampleStep = 140

// ExampleStep returns the step that runs an example of a tool. If the example needs calls before it, the step is a
// plan of the tool with the example's values or, if that would make other calls, a plan of the example.
func ExampleStep(d *manifest.ToolDocs, example int) step.Step {
	e := &d.Examples[example]
	if len(e.Before) == 0 && !strings.Contains(string(e.Params), `"${`) {
		return step.Call(d.Name, e.Params)
	}
	var own map[string]json.RawMessage
	_ = json.Unmarshal(e.Params, &own)
	differs := example > 0 // only the first one needs nothing of its own
	for name, value := range own {
		if strings.Contains(string(value), `"${`) {
			differs = differs || value[0] != '"'
			delete(own, name)
		}
	}
	if differs {
		return step.Step{Op: step.OpPlan, Tool: d.Name, Args: []string{strconv.Itoa(example + 1)}}
	}
	params, _ := manifest.Marshal(own)
	return step.Plan(d.Name, params)
}
