package trace

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record"
	"github.com/parley-tools/parley/manifest"
)

// succeeded reads the calls that succeeded since a moment.
func succeeded(dir string, since time.Time) iter.Seq2[Record, error] {
	return Records(dir, nil).Read(record.Filter{Since: since, Op: opCall, Code: string(host.OK)})
}

// Used returns the tools that a caller has called with success at least n times since a moment, the most called first.
// Calls that tools made for it are not its own. Without traces there are none.
func Used(dir, caller string, n int, since time.Time) (tools []string) {
	calls := map[string]int{}
	for r, err := range succeeded(dir, since) {
		if err == nil && r.Caller == caller {
			calls[r.Tool]++
		}
	}
	for tool, times := range calls {
		if times >= n {
			tools = append(tools, tool)
		}
	}
	slices.SortFunc(tools, func(a, b string) int { return cmp.Or(calls[b]-calls[a], strings.Compare(a, b)) })
	return tools
}

// Uses returns who called the tools of a plugin with success since a moment, by the local name of the tool: "12 calls
// by mcp:claude 10, cli 2".
func Uses(dir, plugin string, since time.Time) map[string]string {
	calls := map[string]map[string]int{}
	for r, err := range succeeded(dir, since) {
		if name, ok := strings.CutPrefix(r.Tool, plugin+"."); err == nil && ok {
			if calls[name] == nil {
				calls[name] = map[string]int{}
			}
			calls[name][r.Caller]++
		}
	}
	uses := map[string]string{}
	for name, by := range calls {
		callers, all := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
			return cmp.Or(by[b]-by[a], strings.Compare(a, b))
		}), 0
		for i, caller := range callers {
			all += by[caller]
			callers[i] = fmt.Sprintf("%s %d", manifest.CleanLine(caller), by[caller])
		}
		uses[name] = manifest.Plural(all, "call") + " by " + strings.Join(callers, ", ")
	}
	return uses
}

// Costs returns the medians of what successful calls of tools since a moment took. It leaves out tools without any.
func Costs(dir string, tools []string, since time.Time) map[string]host.Cost {
	times, sizes := map[string][]float64{}, map[string][]int{}
	for r, err := range succeeded(dir, since) {
		if err == nil && slices.Contains(tools, r.Tool) {
			times[r.Tool] = append(times[r.Tool], r.MS)
			sizes[r.Tool] = append(sizes[r.Tool], r.OutBytes)
		}
	}
	costs := map[string]host.Cost{}
	for tool, ms := range times {
		bytes := slices.Sorted(slices.Values(sizes[tool]))
		slices.Sort(ms)
		costs[tool] = host.Cost{Calls: len(ms), MS: ms[len(ms)/2], Tokens: manifest.TokensOf(bytes[len(bytes)/2])}
	}
	return costs
}
