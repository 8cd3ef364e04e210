package tools

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

// chapters are the commands in the help for people, by what they are for: the name of each, and what it does. An agent
// reads [HelpData] instead.
var chapters = []struct {
	title    string
	commands [][2]string
}{
	{"Find and run tools", [][2]string{
		{"search", "find tools by what they do, in your own words"},
		{"list", "list plugins, groups or tools"},
		{"plan", "find the calls that a tool needs before it, and run them"},
		{"learn", "try the main tools of a plugin, step by step"},
		{"call", "run a tool by its whole name"},
		{"batch", "run calls from a file, one JSON object a line"},
		{"code", "run a JavaScript program that calls tools"},
		{"result", "print the whole of a result that was cut"},
	}},
	{"Connect agents", [][2]string{
		{"mcp", "serve the tools to an MCP client; mcp config sets a client up"},
		{"session", "list and end the sessions of agents, each with pages of its own"},
	}},
	{"Add plugins", [][2]string{
		{"plugin", "write, build, check, install and publish plugins; wrap programs and HTTP APIs"},
		{"docs", "export documentation, and improve it by what callers get wrong"},
	}},
	{"Decide what they may do", [][2]string{
		{"policy", "grant rights to plugins, and say which caller may call what"},
		{"secret", "store values that the host sends and no tool sees"},
		{"login", "log in to the service of a plugin (OAuth)"},
		{"logout", "log out again, and revoke the tokens"},
		{"audit", "show who called what, and verify that the log is unchanged"},
	}},
	{"See what happened", [][2]string{
		{"stats", "show how often tools are called, and how they fail"},
		{"trace", "look at recorded calls, export or clear them"},
		{"runner", "list and stop the processes that plugins run in"},
	}},
	{"Set up", [][2]string{
		{"doctor", "check the set-up, and say how to repair it"},
		{"config", "show settings, and where each comes from"},
		{"completion", "complete commands and tools with Tab"},
		{"help", "explain a command, a plugin or a tool"},
		{"version", "print the version"},
	}},
}

// peopleHelp writes the help that a person sees at a terminal.
func peopleHelp(a *command.App, w io.Writer, root *cobra.Command) {
	p := a.Page(w)
	p.Text(0, command.Bold, "parley "+parley.Version+": tools that document themselves, in sandboxes")
	p.Rows("Use a tool", [][2]string{
		{"parley --list", "the plugins"}, {"parley PLUGIN --list", "its tools"},
		{"parley PLUGIN TOOL --describe", "how a tool is used"},
		{"parley PLUGIN TOOL [WORD...]", "run it"},
	})
	for _, c := range chapters {
		p.Rows(c.title, command.Map(c.commands, func(row [2]string) [2]string {
			cmd, _, _ := root.Find(row[:1])
			return [2]string{cmd.Use, row[1]}
		}))
	}
	p.Commands("Examples", []string{`parley search "take a picture of the page"`, "parley page open https://example.com",
		"parley mcp config --client claude-code --write"})
	p.Rows("More", [][2]string{
		{"parley COMMAND --help", "its options and examples"},
		{"parley --help --full", "all commands, options and exit codes"},
		{"parley --help --json", "the same for agents, in few tokens"},
	})
}
