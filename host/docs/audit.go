package docs

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// fattest is how many of the largest tools an audit names.
const fattest = 10

// Audit says what documentation costs, in tokens estimated as manifest.Tokens does.
type Audit struct {
	Modes        []ModeCost `json:"modes"`
	Instructions int        `json:"instructions"` // what each mode says beside its list, once
	// Search and Describe are what search_tools and describe_tool answer, over the tools of this audit: searched for by the first of
	// their tasks, or else by their brief.
	Search   ReplyCost `json:"search"`
	Describe ReplyCost `json:"describe"`
	// ListedMode is the mode whose list the figures of each tool are of.
	ListedMode string     `json:"listed"`
	Tools      []ToolCost `json:"tools"`
	Fattest    []ToolCost `json:"fattest"` // the first in that list, by what they cost
}

// ModeCost is what tools/list of a mode costs.
type ModeCost struct {
	Mode   string  `json:"mode"`
	Tools  int     `json:"tools"`
	Bytes  int     `json:"bytes"`
	Tokens int     `json:"tokens"`
	Saved  float64 `json:"saved"` // share of what the full list costs
	// BreakEven is how many tools can be searched for and described in one session before the full list would have cost less.
	BreakEven int `json:"even_after_tools"`
}

// ReplyCost is what answers of one kind cost.
type ReplyCost struct {
	Mean int `json:"mean"`
	Most int `json:"most"`
}

// ToolCost is what one tool costs: its text in each tier, and its place in tools/list, where it has one.
type ToolCost struct {
	Name        string `json:"name"`
	Tier1       int    `json:"tier1"`
	Tier2       int    `json:"tier2"`
	Tier3       int    `json:"tier3"`
	Description int    `json:"description,omitempty"`
	Parameters  int    `json:"parameters,omitempty"`
	Listed      int    `json:"listed,omitempty"` // these two, its name, annotations and results
}

// Audit measures the modes, and the tools that names hold (without one, all). With a mode it tells of that alone; without one of
// all, and of each tool what it costs in the full list.
func (s *Source) Audit(ctx context.Context, mode string, names []string) (*Audit, error) {
	tools, err := s.tools(names)
	if err != nil {
		return nil, err
	}
	a := &Audit{Instructions: manifest.Tokens(s.Instructions), ListedMode: cmp.Or(mode, s.fullMode())}
	if a.Search, a.Describe, err = s.replyCosts(ctx, tools); err != nil {
		return nil, err
	}
	lists := map[string][]listed{}
	for _, m := range s.Modes {
		if lists[m], err = s.list(ctx, m); err != nil {
			return nil, err
		}
	}
	full := costOf(s.fullMode(), lists[s.fullMode()])
	for _, m := range s.Modes {
		if mode != "" && m != mode {
			continue
		}
		c := costOf(m, lists[m])
		c.Saved = math.Round(float64(full.Tokens-c.Tokens)/float64(full.Tokens)*1e4) / 1e4
		c.BreakEven = (full.Tokens - c.Tokens) / max(1, a.Search.Mean+a.Describe.Mean)
		a.Modes = append(a.Modes, c)
	}
	if a.Tools, err = s.costs(ctx, tools, lists[a.ListedMode]); err != nil {
		return nil, err
	}
	a.Fattest = slices.DeleteFunc(slices.Clone(a.Tools), func(t ToolCost) bool { return t.Listed == 0 })
	slices.SortStableFunc(a.Fattest, func(x, y ToolCost) int { return y.Listed - x.Listed })
	a.Fattest = append([]ToolCost{}, a.Fattest[:min(len(a.Fattest), fattest)]...)
	return a, nil
}

// costOf counts a list as the array that a model is given.
func costOf(mode string, list []listed) ModeCost {
	bytes := len("[]") + max(0, len(list)-1)
	for _, t := range list {
		bytes += len(t.raw)
	}
	return ModeCost{Mode: mode, Tools: len(list), Bytes: bytes, Tokens: manifest.TokensOf(bytes)}
}

func (s *Source) costs(ctx context.Context, tools []host.Address, list []listed) ([]ToolCost, error) {
	shown := make(map[string]listed, len(list))
	for _, t := range list {
		shown[t.Name] = t
	}
	costs := make([]ToolCost, 0, len(tools))
	for _, at := range tools {
		c := ToolCost{Name: at.Name()}
		for tier, tokens := range map[int]*int{manifest.Tier1: &c.Tier1, manifest.Tier2: &c.Tier2, manifest.Tier3: &c.Tier3} {
			d, err := s.describe(ctx, at, tier)
			if err != nil {
				return nil, err
			}
			*tokens = d.Tokens()
		}
		if t, ok := shown[s.ListedName(c.Name)]; ok {
			c.Description, c.Parameters, c.Listed = manifest.Tokens(t.Description), manifest.TokensOf(len(t.InputSchema)), manifest.TokensOf(len(t.raw))
		}
		costs = append(costs, c)
	}
	return costs, nil
}

// replyCosts measures what it costs to find and to open each tool, in the mode that shows least.
func (s *Source) replyCosts(ctx context.Context, tools []host.Address) (search, describe ReplyCost, err error) {
	var sums [2]int
	for _, at := range tools {
		query := manifest.CleanLine(at.Tool.Docs.Brief)
		if len(at.Tool.Tasks) > 0 {
			query = at.Tool.Tasks[0]
		}
		for i, c := range []struct {
			cost      *ReplyCost
			tool      string
			arguments map[string]string
		}{
			{&search, "search_tools", map[string]string{"query": cmp.Or(query, at.Name())}},
			{&describe, "describe_tool", map[string]string{"name": at.Name()}},
		} {
			tokens, err := s.replyTokens(ctx, c.tool, c.arguments)
			if err != nil {
				return search, describe, err
			}
			sums[i] += tokens
			c.cost.Most = max(c.cost.Most, tokens)
		}
	}
	n := max(1, len(tools))
	search.Mean, describe.Mean = sums[0]/n, sums[1]/n
	return search, describe, nil
}

// replyTokens counts the text that a call answers with.
func (s *Source) replyTokens(ctx context.Context, tool string, arguments map[string]string) (int, error) {
	raw, err := s.Request(ctx, s.Modes[0], "tools/call", map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return 0, err
	}
	var result struct {
		IsError bool
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return 0, err
	}
	var text strings.Builder
	for _, c := range result.Content {
		text.WriteString(c.Text)
	}
	if result.IsError {
		return 0, host.Errorf(host.Internal, "%s answered %s", tool, text.String())
	}
	return manifest.Tokens(text.String()), nil
}
