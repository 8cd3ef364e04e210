package docs

import (
	"fmt"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// perPlugin writes the files of each plugin, in the order of their first tools.
func (x *exporter) perPlugin(write func(m *manifest.Manifest, tools []exported) ([]File, error)) ([]File, error) {
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
		written, err := write(m, tools[plugin])
		if err != nil {
			return nil, err
		}
		files = append(files, written...)
	}
	return files, nil
}

// markdown writes a reference: one page for each plugin.
func (x *exporter) markdown() ([]File, error) {
	return x.perPlugin(func(m *manifest.Manifest, tools []exported) ([]File, error) {
		var b strings.Builder
		fmt.Fprintf(&b, "# %s\n\n%s\n", m.Name, overview(m))
		for _, t := range tools {
			x.toolPage(&b, t)
		}
		codes(&b, m)
		return []File{{Path: m.Name + ".md", Content: []byte(b.String())}}, nil
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
