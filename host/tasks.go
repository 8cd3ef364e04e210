package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// taskDepth is among how many hits a tool must be when one of its own task phrases is looked for.
const taskDepth = 5

// TaskReport says whether the tools of a plugin are found by what their manifest says somebody would ask for.
type TaskReport struct {
	Plugin  string     `json:"plugin"`
	Tools   int        `json:"tools"`
	Phrases int        `json:"phrases"`
	Misses  []TaskMiss `json:"misses,omitempty"`
}

// TaskMiss is a phrase that does not find its own tool among the first five hits of all plugins.
type TaskMiss struct {
	Tool   string   `json:"tool"` // qualified
	Phrase string   `json:"phrase"`
	Got    []string `json:"got"` // what it finds
}

func (m TaskMiss) String() string {
	found := "nothing"
	if len(m.Got) > 0 {
		found = strings.Join(m.Got, ", ")
	}
	return fmt.Sprintf("%s: %q finds %s", m.Tool, manifest.CleanLine(m.Phrase), found)
}

// CheckTasks looks for each task phrase of a plugin's tools among all plugins. It is not traced.
func (h *Host) CheckTasks(plugin string) (*TaskReport, error) {
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
			data, _, err := h.search(SearchQuery{Text: phrase, Limit: taskDepth})
			if err != nil {
				return nil, err
			}
			got := make([]string, 0, taskDepth)
			for _, r := range data.Results {
				got = append(got, r.Name)
			}
			if !slices.Contains(got, full) {
				report.Misses = append(report.Misses, TaskMiss{Tool: full, Phrase: phrase, Got: got})
			}
		}
	}
	return report, nil
}
