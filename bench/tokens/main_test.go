package main

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/internal/testhome"

	"github.com/parley-tools/parley/bench/internal/server"
)

// Promises about tools/list: tokens, and the share that is saved compared with full mode.
const (
	minimalTokens     = 450
	progressiveTokens = 1270 // with plan_call and its options
	minimalSaves      = 0.73
	progressiveSaves  = 0.60
)

// TestPromises counts parley mcp in each mode, as the command does, and compares the counts with the promises.
func TestPromises(t *testing.T) {
	work := testhome.New(t)
	parley := filepath.Join(work, "parley.exe") // a name that every system runs
	if err := testhome.CopyProgram(parley); err != nil {
		t.Fatal(err)
	}
	subjects, err := parleyModes(parley, "../../testdata/wasm/smallest.wasm", work)
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]int{}
	sizes := map[string]int{}
	for _, s := range subjects {
		l, err := s.List(t.Context(), work)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if counted[s.Name], _, err = list(l).tokens(); err != nil {
			t.Fatal(err)
		}
		sizes[s.Name] = len(l)
		t.Logf("%6d tokens, %3d tools: %s", counted[s.Name], len(l), s.Name)
	}
	full := float64(counted["parley mcp --docs full"])
	for name, n := range counted {
		most, saves, tools := 0, 0.0, 0
		switch {
		case strings.Contains(name, "minimal"):
			most, saves, tools = minimalTokens, minimalSaves, 3
		case strings.Contains(name, "progressive"):
			most, saves, tools = progressiveTokens, progressiveSaves, 4+len(commonPins)
		default:
			continue
		}
		if saved := 1 - float64(n)/full; n > most || saved < saves || sizes[name] != tools {
			t.Errorf("%s: %d tokens for %d tools, %.0f %% saved; expected at most %d for %d, and %.0f %%", name, n, sizes[name],
				100*saved, most, tools, 100*saves)
		}
	}
	t.Run("any pins", func(t *testing.T) { testAnyPins(t, parley, work) })
}

// cutName is the length of listed names that were cut, in bytes.
const cutName = 51

// testAnyPins pins the tools with the longest names, those with the longest signatures, and all others in turn.
func testAnyPins(t *testing.T, parley, work string) {
	pinned := func(names []string) list {
		l, err := server.Server{Command: []string{parley, "mcp", "--docs", "progressive"},
			Env: []string{"PARLEY_PINNED_TOOLS=" + strings.Join(names, ",")}}.List(t.Context(), work)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l, err := server.Server{Command: []string{parley, "mcp", "--docs", "full"}}.List(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	fat := map[string]int{}
	var names []string
	for _, raw := range l {
		var tool struct {
			Name        string
			InputSchema struct{ Required []string }
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(tool.Name, "__") && len(tool.Name) < cutName { // a cut name cannot be configured
			names = append(names, tool.Name)
			fat[tool.Name] = len(tool.Name) + len(strings.Join(tool.InputSchema.Required, `{"type":"string"}`))
		}
	}
	byLength := func(length func(string) int) []string {
		all := slices.Clone(names)
		slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(length(b), length(a)) })
		return all[:len(commonPins)]
	}
	worst := 0
	sets := [][]string{byLength(func(name string) int { return len(name) }),
		byLength(func(name string) int { return fat[name] })}
	for _, set := range slices.AppendSeq(sets, slices.Chunk(names, len(commonPins))) {
		n, _, err := pinned(set).tokens()
		if err != nil || n > progressiveTokens {
			t.Errorf("%d tokens with %q pinned (%v); expected at most %d", n, set, err, progressiveTokens)
		}
		worst = max(worst, n)
	}
	t.Logf("%6d tokens with the worst 22 pinned", worst)
}
