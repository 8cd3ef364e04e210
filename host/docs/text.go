package docs

import (
	"fmt"
	"strings"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Limits of an Agent Skill: the characters of its description, the lines of its body, and the number of tools up to
// which the body names each one instead of its groups.
const (
	skillDescription = 1024
	skillLines       = 500
	skillTools       = 60
)

// perPlugin writes one file for each plugin, in the order of their first tools.
func (x *exporter) perPlugin(write func(m *manifest.Manifest, tools []exported) (path, text string)) ([]File, error) {
	var files []File
	var plugins []string
	tools := map[string][]exported{}
	for _, t := range x.tools {
		if tools[t.at.Plugin] == nil {
			plugins = append(plugins, t.at.Plugin)
		}
		tools[t.at.Plugin] = append(tools[t.at.Plugin], t)
	}
	for _, plugin := range plugins {
		m, err := tools[plugin][0].at.Provider.Manifest()
		if err != nil {
			return nil, err
		}
		path, text := write(m, tools[plugin])
		files = append(files, File{Path: path, Content: []byte(text)})
	}
	return files, nil
}

// markdown writes a reference: one page for each plugin.
func (x *exporter) markdown() ([]File, error) {
	return x.perPlugin(func(m *manifest.Manifest, tools []exported) (string, string) {
		var b strings.Builder
		fmt.Fprintf(&b, "# %s\n\n%s\n", m.Name, overview(m))
		for _, t := range tools {
			x.toolPage(&b, t)
		}
		codes(&b, m)
		return m.Name + ".md", b.String()
	})
}

// overview joins all tiers of a plugin's own documentation.
func overview(m *manifest.Manifest) string {
	text := prose(m.Docs.Brief)
	for _, more := range []string{m.Docs.Standard, m.Docs.Full} {
		if more = prose(more); more != "" {
			text += "\n\n" + more
		}
	}
	return text
}

// toolPage writes the whole documentation of a tool.
func (x *exporter) toolPage(b *strings.Builder, t exported) {
	d := t.docs
	fmt.Fprintf(b, "\n## %s\n\n%s", d.Name, prose(d.Brief))
	fmt.Fprintf(b, " (%s)\n", d.Effect)
	if d.DeprecationMessage != "" {
		fmt.Fprintf(b, "\n%s\n", prose(d.DeprecationMessage))
	}
	if d.Description != d.Brief {
		fmt.Fprintf(b, "\n%s\n", prose(d.Description))
	}
	if len(d.Parameters) > 0 {
		b.WriteString("\n| parameter | type | | meaning |\n|---|---|---|---|\n")
	}
	for _, p := range manifest.WithFields(d.Parameters) {
		use := "optional"
		switch {
		case p.Required:
			use = "required"
		case p.Default != nil:
			use = "= " + string(p.Default)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, cell(p.TypeText()), cell(use), cell(p.Description))
	}
	if len(d.Returns) > 0 {
		b.WriteString("\nReturns:\n\n")
	}
	for _, p := range manifest.WithFields(d.Returns) {
		fmt.Fprintf(b, "- `%s`: %s\n", p.Name, strings.TrimSuffix(prose(p.TypeText())+", "+prose(p.Description), ", "))
	}
	for _, line := range [][2]string{{"Use it when ", d.When}, {"Not when ", d.WhenNot}} {
		if line[1] != "" {
			fmt.Fprintf(b, "\n%s%s.\n", line[0], prose(strings.TrimSuffix(line[1], ".")))
		}
	}
	for _, l := range d.Limitations {
		fmt.Fprintf(b, "\nLimit: %s.\n", prose(strings.TrimSuffix(l, ".")))
	}
	for _, e := range d.Examples {
		title := prose(e.Title)
		if e.ExitCode != 0 {
			title += fmt.Sprintf(" (ends in %d)", e.ExitCode)
		}
		call, _ := manifest.Marshal(namedArguments{t.listed.Name, e.Params})
		fmt.Fprintf(b, "\n%s:\n\n%s%s", title, fenced("sh", e.Command), fenced("json", string(manifest.EscapeJSON(call))))
		if len(e.Result) > 0 {
			returns := "returns"
			if e.NotRun != "" {
				returns = "returns, as declared but not verified,"
			}
			b.WriteString("\n" + returns + "\n\n" + fenced("json", string(manifest.CompactJSON(e.Result))))
		}
	}
}

// codes writes the exit codes that a plugin declares.
func codes(b *strings.Builder, m *manifest.Manifest) {
	if len(m.ExitCodes) == 0 {
		return
	}
	b.WriteString("\n## Exit codes\n\n| code | name | meaning | what to do |\n|---|---|---|---|\n")
	for _, c := range m.ExitCodes {
		fmt.Fprintf(b, "| %d | %s | %s | %s |\n", c.Code, cell(c.Name), cell(c.Meaning), cell(c.Suggestion))
	}
}

// skills writes one Agent Skill for each plugin: a folder with a SKILL.md that names the tools and the commands that
// have the rest.
func (x *exporter) skills() ([]File, error) {
	taken := map[string]bool{}
	return x.perPlugin(func(m *manifest.Manifest, tools []exported) (string, string) {
		name := skillOf(m.Name)
		for taken[name] { // two names may differ in their punctuation alone
			name += "-2"
		}
		taken[name] = true
		var b strings.Builder
		fmt.Fprintf(&b, "---\nname: %s\ndescription: %s\ncompatibility: Needs the parley command\n---\n\n",
			name, jsontext.Marshal(skillAbout(m, tools)))
		b.WriteString(x.skillBody(m, tools))
		return name + "/SKILL.md", b.String()
	})
}

// skillOf returns the name of a plugin's skill: lower-case letters, digits and single hyphens. It stays below the limit
// of 64 characters, because names of plugins are short.
func skillOf(plugin string) string {
	words := strings.FieldsFunc(strings.ToLower(plugin), func(r rune) bool { return r == '_' || r == '-' })
	return "parley-" + strings.Join(words, "-")
}

// skillAbout returns the description of a skill: what the plugin does and when to use it.
func skillAbout(m *manifest.Manifest, tools []exported) string {
	text := manifest.CleanLine(m.Docs.Brief) + "."
	if more := manifest.CleanLine(m.Docs.Standard); more != "" {
		text += " " + more
	}
	var tasks []string
	for _, t := range tools {
		if len(t.docs.Tasks) > 0 {
			tasks = append(tasks, t.docs.Tasks[0])
		}
	}
	if len(tasks) > 0 {
		text += " For tasks such as: " + strings.Join(tasks, "; ") + "."
	}
	return truncate(prose(text), skillDescription)
}

func (x *exporter) skillBody(m *manifest.Manifest, tools []exported) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", m.Name, overview(m))
	b.WriteString("Each tool is a command that prints its result as JSON. A failure prints to stderr what was wrong\n" +
		"and what to type instead: correct the call and run it again.\n\n")
	fmt.Fprintf(&b, "- What a tool takes, with examples: `parley %s TOOL --describe`\n"+
		"- A tool for a task: `parley search \"what you want\" --plugin %s`\n", m.Name, m.Name)
	if len(m.Tutorial) > 0 {
		fmt.Fprintf(&b, "- A first use, step by step: `parley learn %s`\n", m.Name)
	}
	b.WriteString("\n## Tools\n\n")
	each := tools
	if len(tools) > skillTools { // too many to name: list the groups instead
		each = nil
		counts := map[string]int{}
		for _, t := range tools {
			if t.at.Tool.Group == "" {
				each = append(each, t)
			}
			counts[t.at.Tool.Group]++
		}
		groups, _ := tools[0].at.Provider.Groups()
		fmt.Fprintf(&b, "%d tools in groups; `parley %s GROUP --list` names those of one.\n\n", len(tools)-counts[""], m.Name)
		for _, g := range groups {
			if counts[g.Name] > 0 {
				fmt.Fprintf(&b, "- `%s` (%d): %s\n", g.Name, counts[g.Name], truncate(prose(g.Brief), 160))
			}
		}
		b.WriteString("\n")
	}
	for _, t := range each {
		fmt.Fprintf(&b, "- `%s`: %s", t.docs.Tool, prose(t.docs.Brief))
		if t.docs.Effect != manifest.EffectRead {
			fmt.Fprintf(&b, " (%s)", t.docs.Effect)
		}
		b.WriteString("\n")
		if examples := t.examples(); len(examples) > 0 {
			if command := examples[0].Command; len(command) <= maxCommand && !strings.Contains(command, "`") {
				fmt.Fprintf(&b, "  `%s`\n", command)
			}
		}
	}
	codes(&b, m)
	return within(b.String(), skillLines-1, "\nFor the rest: `parley "+m.Name+" --list`\n")
}

// within cuts a text to a number of lines. The lines of last replace what was cut off.
func within(text string, lines int, last string) string {
	all := strings.SplitAfter(text, "\n")
	if len(all) <= lines {
		return text
	}
	return strings.Join(all[:lines-strings.Count(last, "\n")], "") + last
}

// prose escapes a foreign text for Markdown, so that it is text alone: no tag, no heading, no fence.
func prose(text string) string {
	return strings.NewReplacer("<", "&lt;", "\n#", "\n\\#", "```", "'''").Replace(manifest.Clean(text))
}

// cell escapes a foreign text for a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(prose(manifest.CleanLine(text)), "|", `\|`)
}

// fenced returns a code block whose fence is longer than any in the code.
func fenced(language, code string) string {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	return fence + language + "\n" + code + "\n" + fence + "\n"
}
