package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/call"
	"github.com/parley-tools/parley/host/search"
	"github.com/parley-tools/parley/manifest"
)

// taskDepth is the number of hits among which a tool must be when one of its own task phrases is searched for.
const taskDepth = 5

// TaskReport reports whether search finds the tools of a plugin by the task phrases in its manifest.
type TaskReport struct {
	Plugin  string     `json:"plugin"`
	Tools   int        `json:"tools"`
	Phrases int        `json:"phrases"`
	Misses  []TaskMiss `json:"misses,omitempty"`
}

// TaskMiss is a phrase whose own tool is not among the first five hits in all plugins.
type TaskMiss struct {
	Tool   string   `json:"tool"` // qualified
	Phrase string   `json:"phrase"`
	Got    []string `json:"got"` // the hits
}

func (m TaskMiss) String() string {
	found := "nothing"
	if len(m.Got) > 0 {
		found = strings.Join(m.Got, ", ")
	}
	return fmt.Sprintf("%s: %q finds %s", m.Tool, manifest.CleanValue(m.Phrase), found)
}

// CheckTasks searches all plugins for each task phrase of a plugin's tools. The searches are not recorded. The error is
// not_found for an unknown plugin.
func CheckTasks(h *call.Host, plugin string) (*TaskReport, error) {
	at, err := h.Catalog().FindIn(plugin, "")
	if err != nil {
		return nil, err
	}
	names, err := at.Provider.Names()
	if err != nil {
		return nil, err
	}
	report := &TaskReport{Plugin: at.Plugin, Tools: len(names)}
	for _, name := range names {
		tool, err := at.Provider.Tool(name)
		if err != nil {
			return nil, err
		}
		full := at.Plugin + "." + name
		for _, phrase := range tool.Tasks {
			report.Phrases++
			got := append([]string{}, Hits(h, search.Query{Text: phrase, Limit: taskDepth})...)
			if !slices.Contains(got, full) {
				report.Misses = append(report.Misses, TaskMiss{Tool: full, Phrase: phrase, Got: got})
			}
		}
	}
	return report, nil
}
