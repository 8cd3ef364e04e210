package tools

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/documents"
)

// peopleHelp writes the help for a person at a terminal. Agents read [HelpData] instead.
func peopleHelp(a *command.App, w io.Writer, root *cobra.Command) {
	p := a.Page(w)
	p.Text(0, command.Bold, "parley "+parley.Version+": tools that document themselves, in sandboxes")
	p.Rows("Use a tool", [][2]string{
		{"parley --list", "the plugins"}, {"parley PLUGIN --list", "its tools"},
		{"parley PLUGIN TOOL --describe", "how a tool is used"},
		{"parley PLUGIN TOOL [WORD...]", "run it"},
	})
	for _, c := range a.Commands {
		p.Rows(c.Chapter, command.Map(c.Of, func(m command.Maker) [2]string {
			cmd, _, _ := root.Find([]string{m.Name()})
			return [2]string{cmd.Use, cmd.Short}
		}))
	}
	p.Commands("Examples", []string{`parley search "take a picture of the page"`, "parley page open https://example.com",
		"parley mcp config --client claude-code --write"})
	p.Rows("More", [][2]string{
		{"parley COMMAND --help", "its options and examples"},
		{"parley --help --full", "all commands, options and exit codes"},
		{"parley --help --json", "the same for agents, in few tokens"},
		{"parley help TOPIC", "a document: " + strings.Join(documents.Topics(), ", ")},
	})
}
