package docs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Budgets of the texts that agents load, in estimated tokens. Commands have more tokens than prose of their length: a
// page of 480 has up to 600 in o200k.
const (
	skillTokens     = 480  // SKILL.md, which is loaded as a whole
	referenceTokens = 6000 // a reference; further tools are in it by their signatures only
	agentsTokens    = 320  // a block of AGENTS.md, which is in the context of every session
	llmsTokens      = 1200 // llms.txt, which is an index of all plugins
)

// Limits of a skill in characters and tools.
const (
	// skillDescription limits the description, which is loaded for every skill. The format allows 1024 characters and
	// recommends some 100 tokens together with the name.
	skillDescription = 440
	skillOverview    = 440 // characters of the text about the plugin on the page
	skillTools       = 60  // up to so many tools a skill documents each; a larger plugin lists its groups
	maxNames         = 40  // names of tools or plugins whose briefs do not fit
)

// answers is what an agent has to know of any call.
const answers = "- Parameters are words after the tool, `--param KEY=VALUE`, or `--params JSON` (`@FILE`, `-`).\n" +
	"- A result is JSON on stdout: `--jq FILTER` keeps a part, `--out FILE` writes it, `PARLEY_AGENT=1` limits it to\n" +
	"  32 KiB.\n" +
	"- An error is on stderr and says what was expected. Run the command after `Tip:` next; `<name: type>` in it\n" +
	"  stands for a value that only you know.\n" +
	"- Exit codes: 81 is your arguments. 82 is a right that only the operator can grant: report the command that the\n" +
	"  error names, and do not work around it. 2-79 are the tool's own.\n\n"

// skills writes an Agent Skill for each plugin: a folder with a SKILL.md that leads from a task to a result, and a
// reference with its tools.
func (x *exporter) skills() ([]File, error) {
	return x.perPlugin(func(m *manifest.Manifest, tools []exported) ([]File, error) {
		folder := x.skillName(m.Name)
		reference, err := x.reference(m, tools)
		page := fmt.Sprintf("---\nname: %s\ndescription: %s\ncompatibility: Requires a shell and the parley command\n"+
			"metadata:\n  plugin: %s\n  version: %s\n---\n\n# %s\n\n%s\n\n%s%s## Tools\n\nParameters, results and exit "+
			"codes are in [references/tools.md](references/tools.md).\n\n", folder, jsontext.Marshal(skillAbout(m, tools)),
			jsontext.Marshal(m.Name), jsontext.Marshal(m.Version), m.Name, truncate(overview(m), skillOverview),
			x.walk(m.Name, tools), answers)
		each := documented(tools)
		if n := len(tools) - len(each); n > 0 {
			page += fmt.Sprintf("- %s in groups, which `parley %s --list` and the reference list\n",
				manifest.Plural(n, "tool"), m.Name)
		}
		page += lines(lists.Map(each, func(t exported) item { return item{t.docs.Tool, t.docs.Brief} }),
			skillTokens-manifest.Tokens(page))
		return []File{{Path: folder + "/SKILL.md", Content: []byte(page)},
			{Path: folder + "/references/tools.md", Content: []byte(reference)}}, err
	})
}

// skillName returns the name of a plugin's skill: lower-case letters, digits and single hyphens. It stays below the
// limit of 64 characters, because names of plugins are short.
func (x *exporter) skillName(plugin string) string {
	words := strings.FieldsFunc(strings.ToLower(plugin), func(r rune) bool { return r == '_' || r == '-' })
	name := "parley-" + strings.Join(words, "-")
	for cmp.Or(x.skillNames[name], plugin) != plugin { // two names may differ in their punctuation alone
		name += "-2"
	}
	x.skillNames[name] = plugin
	return name
}

// skillAbout returns the description of a skill: what the plugin does and when to use it.
func skillAbout(m *manifest.Manifest, tools []exported) string {
	text := strings.TrimSuffix(manifest.CleanLine(m.Docs.Brief)+". "+manifest.CleanLine(m.Docs.Standard), " ")
	text = truncate(prose(text), skillDescription*5/8)
	joint := " Use it for tasks such as: "
	for _, t := range tools {
		if len(t.docs.Tasks) > 0 && len(text)+len(joint)+len(t.docs.Tasks[0]) < skillDescription {
			text += joint + prose(manifest.CleanLine(t.docs.Tasks[0]))
			joint = "; "
		}
	}
	return strings.TrimRight(text, ".") + "."
}

// walk shows the commands that lead from a task to a result, for the first tool that has a task and an example: one of
// the common tools, if possible. Without a plugin the search is over all. Without tools it is empty.
func (x *exporter) walk(plugin string, tools []exported) string {
	if len(tools) == 0 {
		return ""
	}
	usable := func(t *exported) bool {
		e := t.examples()
		return len(t.docs.Tasks) > 0 && len(e) > 0 && len(e[0].Command) <= maxCommand
	}
	common := func(t *exported) bool { return usable(t) && slices.Contains(x.Common, t.listed.Name) }
	t := cmp.Or(lists.Find(tools, common), lists.Find(tools, usable), &tools[0])
	task := slices.Concat(t.docs.Tasks, []string{t.docs.Brief})[0]
	commands := []string{
		x.Command(step.Step{Op: step.OpSearch, Tool: plugin, Query: manifest.CleanLine(task)}),
		x.Command(step.Step{Op: step.OpDescribe, Tool: t.docs.Name}),
	}
	if usable(t) {
		commands = append(commands, t.examples()[0].Command)
	}
	return fenced("sh", strings.Join(commands, "\n")) + "\nThe search names the tools that fit, best first, and the " +
		"arguments of the first ones: often the call can\nfollow at once. `--describe` documents a tool, with examples.\n\n"
}

// documented returns the tools that a skill documents one by one.
func documented(tools []exported) []exported {
	if len(tools) <= skillTools {
		return tools
	}
	return lists.Filter(tools, func(t exported) bool { return t.at.Tool.Group == "" })
}

// reference documents the tools of a plugin as describe does, those beyond the budget by their signatures.
func (x *exporter) reference(m *manifest.Manifest, tools []exported) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Tools of %s\n\n`parley %s TOOL --describe --tier 3` has all of a tool.\n", m.Name, m.Name)
	each := documented(tools)
	if len(each) < len(tools) {
		groups, err := tools[0].at.Provider.Groups()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n## Groups\n\n`parley %s GROUP --list` lists the tools of a group.\n\n", m.Name)
		for _, g := range groups {
			if n := len(lists.Filter(tools, func(t exported) bool { return t.at.Tool.Group == g.Name })); n > 0 {
				fmt.Fprintf(&b, "- %s (%d): %s\n", g.Name, n, truncate(prose(g.Brief), 160))
			}
		}
	}
	for _, t := range each {
		tier := manifest.Tier2
		if manifest.TokensOf(b.Len()) > referenceTokens {
			tier = manifest.Tier1
		}
		d, err := x.describe(t.at, tier)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", t.docs.Tool, fenced("text", strings.TrimSpace(manifest.Clean(d.Text()))))
	}
	codes(&b, m)
	return b.String(), nil
}

// item is a line of a list: a tool or a plugin.
type item struct{ name, brief string }

// lines describes as many items as the tokens allow, and names the others.
func lines(items []item, tokens int) (text string) {
	for i, it := range items {
		line := "- " + it.name + ": " + manifest.CleanLine(prose(it.brief)) + "\n"
		if manifest.Tokens(text+line+also("Also: ", items[i+1:])) > tokens {
			return text + also(map[bool]string{true: "Also: "}[i > 0], items[i:])
		}
		text += line
	}
	return text
}

// also names items in one line.
func also(lead string, items []item) string {
	if len(items) == 0 {
		return ""
	}
	more := ""
	if n := len(items) - maxNames; n > 0 {
		items, more = items[:maxNames], fmt.Sprintf(" and %d more", n)
	}
	return "- " + lead + strings.Join(lists.Map(items, func(it item) string { return it.name }), ", ") + more + "\n"
}

// llms writes llms.txt, an index in the form of llmstxt.org, and the skills to which it links.
func (x *exporter) llms() ([]File, error) {
	skills, err := x.skills()
	if err != nil {
		return nil, err
	}
	text, err := x.index("# Parley\n\n> `parley` runs tools for agents: web pages, programs in sandboxes, HTTP APIs. A "+
		"tool is\n> found, documented and called by the same commands, in a shell or over MCP.\n\n", "## Plugins\n\n",
		llmsTokens,
		func(plugin string) string { return fmt.Sprintf("[%s](%s/SKILL.md)", plugin, x.skillName(plugin)) })
	return append([]File{{Path: "llms.txt", Content: []byte(text)}}, skills...), err
}

// agents writes a block for AGENTS.md, the instructions that agents in a repository read first.
func (x *exporter) agents() ([]File, error) {
	text, err := x.index(blockBegin+", written by parley docs export --format agents --out . -->\n## Parley\n\n"+
		"The command `parley` has tools for what is listed below; `parley --list` has all. Use it before you write a "+
		"script\nor install a program for such a task.\n\n", "", agentsTokens, strings.Clone)
	return []File{{Path: "AGENTS.md", Content: []byte(text + blockEnd + "\n"), Block: true}}, err
}

// index joins what agents have to know with a list of the plugins.
func (x *exporter) index(head, heading string, tokens int, form func(plugin string) string) (string, error) {
	head += x.walk("", x.tools) + answers + heading
	var items []item
	_, err := x.perPlugin(func(m *manifest.Manifest, _ []exported) ([]File, error) {
		items = append(items, item{form(m.Name), m.Docs.Brief})
		return nil, nil
	})
	return head + lines(items, tokens-manifest.Tokens(head)), err
}

// The marks of the block that an export owns in a file. The first one is the beginning of a comment.
const (
	blockBegin = "<!-- parley:begin"
	blockEnd   = "<!-- parley:end -->"
)

// Splice returns the text of a file with its block replaced, or with the block at the end if it has none. The rest of
// the text stays as it is. It fails if the marks do not enclose exactly one block.
func Splice(text, block string) (string, error) {
	before, within, begins := strings.Cut(text, blockBegin)
	within, after, ends := strings.Cut(within, blockEnd)
	switch {
	case begins && ends && !strings.Contains(within+after, blockBegin) && !strings.Contains(after, blockEnd):
		return before + strings.TrimSuffix(block, "\n") + after, nil
	case begins || strings.Contains(text, blockEnd):
		return "", fmt.Errorf("it must have %s .. --> and %s once each, in this order; remove the old block",
			blockBegin, blockEnd)
	case text == "" || strings.HasSuffix(text, "\n\n"):
		return text + block, nil
	}
	return strings.TrimSuffix(text, "\n") + "\n\n" + block, nil
}
