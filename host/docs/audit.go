package docs

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// fattest is the number of tools in [Audit.Fattest].
const fattest = 10

// Audit is the cost of documentation in tokens, estimated by [manifest.Tokens].
type Audit struct {
	Modes        []ModeCost `json:"modes"`
	Instructions int        `json:"instructions"` // sent once in every mode, in addition to the list
	// Search and Describe are the costs of the replies of search_tools and describe_tool, measured for each tool of the
	// audit. The query is the first task of the tool, or its brief where it has none.
	Search   ReplyCost `json:"search"`
	Describe ReplyCost `json:"describe"`
	// ListedMode is the mode whose list the Listed figures of the tools refer to.
	ListedMode string     `json:"listed"`
	Tools      []ToolCost `json:"tools"`
	Fattest    []ToolCost `json:"fattest"` // the tools with the largest entries in that list, in descending order
}

// ModeCost is the cost of tools/list in one mode.
type ModeCost struct {
	Mode   string  `json:"mode"`
	Tools  int     `json:"tools"`
	Bytes  int     `json:"bytes"`
	Tokens int     `json:"tokens"`
	Saved  float64 `json:"saved"` // as a share of the cost of the full list
	// BreakEven is the number of tools that a session can search for and describe before the full list would be cheaper.
	BreakEven int `json:"even_after_tools"`
}

// ReplyCost is the cost of replies of one kind.
type ReplyCost struct {
	Mean int `json:"mean"`
	Most int `json:"most"`
}

// ToolCost is the cost of one tool: its documentation at each tier, and its entry in tools/list if it has one.
type ToolCost struct {
	Name        string `json:"name"`
	Tier1       int    `json:"tier1"`
	Tier2       int    `json:"tier2"`
	Tier3       int    `json:"tier3"`
	Description int    `json:"description,omitempty"`
	Parameters  int    `json:"parameters,omitempty"`
	Listed      int    `json:"listed,omitempty"` // the whole entry, with name, annotations and result schema
}

// Audit measures the documentation of the named plugins, groups and tools, or of all tools if names is empty. With a
// mode it reports that mode alone. Without one it reports every mode, and the costs of tools in the list of the full
// mode.
func (s *Source) Audit(ctx context.Context, mode string, names []string) (*Audit, error) {
	tools, err := s.tools(names)
	if err != nil {
		return nil, err
	}
	a := &Audit{Instructions: manifest.Tokens(s.Instructions), ListedMode: cmp.Or(mode, s.Full)}
	if a.Search, a.Describe, err = s.replyCosts(ctx, tools); err != nil {
		return nil, err
	}
	inMode := map[string]map[string]listed{}
	for _, m := range s.Modes {
		if inMode[m], err = s.list(ctx, m); err != nil {
			return nil, err
		}
	}
	full := costOf(s.Full, inMode[s.Full])
	for _, m := range s.Modes {
		if mode != "" && m != mode {
			continue
		}
		c := costOf(m, inMode[m])
		c.Saved = math.Round(float64(full.Tokens-c.Tokens)/float64(full.Tokens)*1e4) / 1e4
		c.BreakEven = (full.Tokens - c.Tokens) / max(1, a.Search.Mean+a.Describe.Mean)
		a.Modes = append(a.Modes, c)
	}
	if a.Tools, err = s.costs(ctx, tools, inMode[a.ListedMode]); err != nil {
		return nil, err
	}
	a.Fattest = lists.Filter(a.Tools, func(t ToolCost) bool { return t.Listed > 0 })
	slices.SortStableFunc(a.Fattest, func(x, y ToolCost) int { return y.Listed - x.Listed })
	a.Fattest = append([]ToolCost{}, a.Fattest[:min(len(a.Fattest), fattest)]...)
	return a, nil
}

// costOf measures a list as the JSON array that a model reads.
func costOf(mode string, list map[string]listed) ModeCost {
	bytes := len("[]") + max(0, len(list)-1)
	for _, t := range list {
		bytes += len(t.raw)
	}
	return ModeCost{Mode: mode, Tools: len(list), Bytes: bytes, Tokens: manifest.TokensOf(bytes)}
}

func (s *Source) costs(ctx context.Context, tools []host.Address, list map[string]listed) ([]ToolCost, error) {
	costs := make([]ToolCost, 0, len(tools))
	for _, at := range tools {
		c := ToolCost{Name: at.Name()}
		tiers := map[int]*int{manifest.Tier1: &c.Tier1, manifest.Tier2: &c.Tier2, manifest.Tier3: &c.Tier3}
		for tier, tokens := range tiers {
			d, err := s.describe(ctx, at, tier)
			if err != nil {
				return nil, err
			}
			*tokens = d.Tokens()
		}
		if t, ok := list[s.ListedName(c.Name)]; ok {
			c.Description, c.Parameters = manifest.Tokens(t.Description), manifest.TokensOf(len(t.InputSchema))
			c.Listed = manifest.TokensOf(len(t.raw))
		}
		costs = append(costs, c)
	}
	return costs, nil
}

// replyCosts measures what it costs to find and to describe each tool in the smallest mode.
func (s *Source) replyCosts(ctx context.Context, tools []host.Address) (search, describe ReplyCost, err error) {
	add := func(cost *ReplyCost, tool, parameter, value string) {
		tokens, failed := s.replyTokens(ctx, tool, map[string]string{parameter: value})
		err = cmp.Or(err, failed)
		cost.Mean += tokens
		cost.Most = max(cost.Most, tokens)
	}
	for _, at := range tools {
		query := manifest.CleanLine(at.Tool.Docs.Brief)
		if len(at.Tool.Tasks) > 0 {
			query = at.Tool.Tasks[0]
		}
		add(&search, "search_tools", "query", cmp.Or(query, at.Name()))
		add(&describe, "describe_tool", "name", at.Name())
	}
	search.Mean, describe.Mean = search.Mean/max(1, len(tools)), describe.Mean/max(1, len(tools))
	return search, describe, err
}

// replyTokens calls a tool of the server and returns the tokens of the text in its reply.
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
		return 0, host.Errorf(host.Internal, "%s failed: %s", tool, text.String())
	}
	return manifest.Tokens(text.String()), nil
}
