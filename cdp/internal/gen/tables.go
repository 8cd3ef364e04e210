package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/protocol"
)

// The tables are tab-separated with one row per line. Empty lines and lines that start with # are skipped.
const (
	domainsTable    = "domains.tsv"    // domain, brief
	effectsTable    = "effects.tsv"    // command, effect, reach, url, files, callers, as explained in the file
	enablesTable    = "enables.tsv"    // domain, for, needs, keeps, reason, as explained in the file
	briefsTable     = "briefs.tsv"     // command, brief
	phrasesTable    = "phrases.tsv"    // command, phrases separated by "; ", keywords separated by spaces (may be absent)
	deprecatedTable = "deprecated.tsv" // command, replacement or -, message
	examplesTable   = "examples.tsv"   // command, title, parameters, before, values, as explained in the file
	valuesTable     = "values.tsv"     // key as explained in the file, JSON
	paramsTable     = "params.tsv"     // command, parameters separated by spaces, as explained in the file
	whenTable       = "when.tsv"       // command, when, when not, related, as explained in the file

	descriptionsTable = "descriptions.tsv" // key as explained in the file, text
)

// maxPhrases limits the phrases of a command, so that common commands are not diluted by many phrases.
const maxPhrases = 12

// maxWhen limits a text of when.tsv. The second tier has when and when not in full.
const maxWhen = 120

// readTables reads all tables and joins the errors of all rows that do not match the protocol.
func readTables(folder string, p *protocol.Protocol) (protocol.Notes, error) {
	t := tables{folder: folder, p: p, notes: protocol.Notes{Domains: map[string]string{},
		Enables: map[string]protocol.Enabling{}, Commands: map[string]protocol.Note{}, Values: map[string]string{},
		Order: map[string][]string{}, Descriptions: map[string]string{}, Sources: map[string][]protocol.SourceRow{}}}
	t.domains()
	t.effects()
	t.enables()
	t.briefs()
	t.phrases()
	t.deprecated()
	t.examples()
	t.values()
	t.params()
	t.when()
	t.descriptions()
	t.sources()
	t.from()
	t.needs()
	t.ran()
	return t.notes, errors.Join(t.problems...)
}

type tables struct {
	folder   string
	p        *protocol.Protocol
	notes    protocol.Notes
	at       string // the table, and the line that is being read
	problems []error
}

// check records a problem unless ok is set, and returns ok.
func (t *tables) check(ok bool, format string, args ...any) bool {
	if !ok {
		t.problems = append(t.problems, fmt.Errorf("%s: %w", t.at, fmt.Errorf(format, args...)))
	}
	return ok
}

func (t *tables) domains() {
	t.rows(domainsTable, 2, true, func(row []string) {
		d, ok := t.p.Domain(row[0])
		t.check(ok && d.Name == row[0], "there is no domain %s", row[0])
		t.checkSize("the brief", row, 1, protocol.LineSize)
		t.notes.Domains[row[0]] = row[1]
	})
	for _, d := range t.p.Domains() {
		t.check(t.notes.Domains[d.Name] != "", "domain %s is missing", d.Name)
	}
}

// checkSize checks the length of a column.
func (t *tables) checkSize(what string, row []string, column, limit int) {
	size := len(row[column])
	t.check(size <= limit, "%s of %s has %d characters; the limit is %d", what, row[0], size, limit)
}

func (t *tables) effects() {
	t.commands(effectsTable, 6, true, func(row []string, c *protocol.Command, n *protocol.Note) {
		n.Effect, n.Reach = protocol.Effect(row[1]), protocol.Reach(row[2])
		t.check(slices.Contains([]protocol.Effect{protocol.Read, protocol.Write, protocol.Destructive}, n.Effect),
			"%s has effect %q: expected read, write or destructive", row[0], row[1])
		reaches := []protocol.Reach{protocol.Page, protocol.Context, protocol.Browser, protocol.Machine}
		t.check(slices.Contains(reaches, n.Reach),
			"%s has reach %q: expected page, context, browser or machine", row[0], row[2])
		n.URL, n.Files = t.pointers(c, row[3], "url"), t.pointers(c, row[4], "path", "file")
		t.check(len(n.Files) == 0 || n.Reach == protocol.Machine, "%s names files of this machine, and its reach is %s",
			row[0], row[2])
		if row[5] != "-" {
			n.Callers = row[5]
		}
		t.check(n.Callers == "" || n.InContext() || n.Refusal(true) != "",
			"%s has callers %q: expected -, context, or plugin: or person: with a reason", row[0], row[5])
	})
	for _, name := range t.p.Names() {
		t.check(t.notes.Commands[name].Effect != "", "command %s is missing", name)
	}
}

func (t *tables) enables() {
	t.rows(enablesTable, 5, true, func(row []string) {
		c, ok := t.p.Command(row[0] + ".enable")
		t.check(ok && c.Domain == row[0], "there is no command %s.enable", row[0])
		t.check(slices.Contains([]string{protocol.EnableForAll, protocol.EnableForRead, protocol.EnableForNone}, row[1]),
			"%s is enabled for %q: expected all, read or none", row[0], row[1])
		e := protocol.Enabling{For: row[1], Needs: list(row[2]), Keeps: list(row[3])}
		for _, needed := range e.Needs {
			d, ok := t.p.Domain(needed)
			t.check(ok && d.Name == needed, "%s needs %s, which is not a domain", row[0], needed)
		}
		for _, pattern := range e.Keeps {
			one := protocol.Enabling{Keeps: []string{pattern}}
			t.check(slices.ContainsFunc(t.p.Names(), one.KeptBy), "%s is kept by %s, which matches no command", row[0], pattern)
		}
		t.notes.Enables[row[0]] = e
	})
	for _, name := range t.p.Names() {
		domain, ok := strings.CutSuffix(name, ".enable")
		t.check(!ok || t.notes.Enables[domain].For != "", "domain %s is missing", domain)
	}
}

// list reads a column of names that are separated by commas.
func list(column string) []string {
	if column == "-" {
		return nil
	}
	return strings.Split(column, ",")
}

// pointers reads a column of JSON pointers to parameters. A command with a parameter whose name contains one of words
// must have a pointer, or "ref".
func (t *tables) pointers(c *protocol.Command, column string, words ...string) []string {
	switch column {
	case "ref":
		return nil
	case "-":
		for _, p := range c.Params {
			isNamed := func(word string) bool { return strings.Contains(strings.ToLower(p.Name), word) }
			t.check(!slices.ContainsFunc(words, isNamed),
				"%s has the parameter %s, which is not reviewed: expected a pointer, or ref", c.Name, p.Name)
		}
	}
	named := list(column)
	for _, pointer := range named {
		name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/") // types of other parameters are not resolved
		t.check(hasParam(c.Params, name), "%s has no parameter %s", c.Name, pointer)
	}
	return named
}

func hasParam(params []protocol.Param, name string) bool {
	return slices.ContainsFunc(params, func(p protocol.Param) bool { return p.Name == name })
}

func (t *tables) briefs() {
	t.commands(briefsTable, 2, true, func(row []string, _ *protocol.Command, n *protocol.Note) {
		t.checkSize("the brief", row, 1, protocol.LineSize)
		n.Brief = row[1]
	})
}

func (t *tables) phrases() {
	t.commands(phrasesTable, 2, true, func(row []string, _ *protocol.Command, n *protocol.Note) {
		n.Tasks = strings.Split(row[1], "; ")
		t.check(len(n.Tasks) <= maxPhrases, "%s has %d phrases; the limit is %d", row[0], len(n.Tasks), maxPhrases)
		for _, task := range n.Tasks {
			t.check(task == strings.TrimSpace(task) && task != "" && len(task) <= protocol.BriefSize,
				"%s has the phrase %q: expected at most %d characters without surrounding spaces", row[0], task, protocol.BriefSize)
		}
		if len(row) > 2 {
			n.Keywords = strings.Fields(row[2])
		}
	})
}

func (t *tables) deprecated() {
	t.commands(deprecatedTable, 3, true, func(row []string, c *protocol.Command, n *protocol.Note) {
		t.check(c.Deprecated, "%s is not deprecated", row[0])
		n.Deprecation = row[2]
		if row[1] != "-" {
			use, ok := t.p.Command(row[1])
			t.check(ok && use.Name == row[1] && !use.Deprecated,
				"%s names %s as its replacement, which does not exist or is deprecated itself", row[0], row[1])
			t.check(strings.Contains(row[2], row[1]), "the message of %s does not name its replacement %s", row[0], row[1])
			n.Use = row[1]
		}
	})
	for _, name := range t.p.Names() {
		c, _ := t.p.Command(name)
		t.check(!c.Deprecated || t.notes.Commands[name].Deprecation != "", "command %s is missing", name)
	}
}

func (t *tables) examples() {
	t.commands(examplesTable, 3, false, func(row []string, c *protocol.Command, n *protocol.Note) {
		t.check(json.Valid([]byte(row[2])) && strings.HasPrefix(row[2], "{"),
			"the parameters of %s are not a JSON object: %s", row[0], row[2])
		e := protocol.Example{Title: row[1], Params: json.RawMessage(row[2])}
		if len(row) > 3 && row[3] != "-" {
			e.Needs = row[3]
		}
		if len(row) > 4 {
			e.From = row[4]
		}
		for _, call := range append(e.Flow().Needs, protocol.Call{Tool: c.Name, Params: e.Params}) {
			t.checkCall(c.Name, call)
		}
		n.Examples = append(n.Examples, e)
	})
}

func (t *tables) values() {
	t.rows(valuesTable, 2, true, func(row []string) {
		t.check(json.Valid([]byte(row[1])), "the value of %s is not JSON: %s", row[0], row[1])
		t.notes.Values[row[0]] = row[1]
		if strings.Contains(row[0], " ") {
			return // by type and name, wherever they occur
		}
		parts := append(strings.SplitN(row[0], ".", 3), "", "")
		owner, name := parts[0]+"."+parts[1], parts[2]
		var fields []protocol.Param
		c, isCommand := t.p.Command(owner)
		y, isType := t.p.Type(owner)
		switch {
		case isCommand && name != "":
			fields = c.Params
		case t.check(isType, "%s is not Domain.Type, Domain.Type.property or Domain.command.parameter", row[0]):
			fields = y.Fields
		}
		t.check(name == "" || hasParam(fields, name), "%s has no %s", owner, name)
	})
}

// params reads which optional parameters are listed first. Required parameters come before them anyway.
func (t *tables) params() {
	t.commands(paramsTable, 2, true, func(row []string, c *protocol.Command, _ *protocol.Note) {
		names := strings.Fields(row[1])
		for i, name := range names {
			fits := func(q protocol.Param) bool { return q.Name == name && q.Optional }
			t.check(slices.ContainsFunc(c.Params, fits) && !slices.Contains(names[:i], name),
				"%s has no optional parameter %s, or the row names it twice", row[0], name)
		}
		t.notes.Order[c.Name] = names
	})
}

// descriptions reads texts for members that the protocol does not describe. A text for any other is an error.
func (t *tables) descriptions() {
	needed := t.p.Undescribed()
	t.rows(descriptionsTable, 2, true, func(row []string) {
		domain, parameter, all := strings.Cut(row[0], ".*.")
		fits := func(name string) bool {
			return name == row[0] || all && strings.HasPrefix(name, domain+".") && strings.HasSuffix(name, "."+parameter) &&
				strings.Count(name, ".") == 2
		}
		t.check(slices.ContainsFunc(needed, fits), "the protocol describes %s, or has nothing of this name", row[0])
		t.notes.Descriptions[row[0]] = row[1]
	})
}

func (t *tables) when() {
	t.commands(whenTable, 4, true, func(row []string, c *protocol.Command, n *protocol.Note) {
		for column := range 2 {
			t.checkSize("a text", row, column+1, maxWhen)
			t.checkNames(row[0], row[column+1])
		}
		if n.When = row[1]; row[2] != "-" {
			n.WhenNot = row[2]
		}
		if row[3] == "-" {
			return
		}
		for _, one := range strings.Split(row[3], "; ") {
			tool, why, ok := strings.Cut(one, ": ")
			t.check(ok && tool != c.Name && len(why) <= maxWhen,
				"%s has %q as related: expected another tool, a colon and why", row[0], one)
			t.checkNames(row[0], tool)
			n.Related = append(n.Related, protocol.Related{Tool: tool, Why: why})
		}
	})
}

var dottedName = regexp.MustCompile(`\b[A-Z]\w*\.\w+`)

// checkNames checks that the commands and events that a text names exist, and that the commands are not deprecated.
func (t *tables) checkNames(of, text string) {
	for _, name := range dottedName.FindAllString(text, -1) {
		e, isEvent := t.p.Event(name)
		c, isCommand := t.p.Command(name)
		t.check(isEvent && e.Name == name || isCommand && c.Name == name && !c.Deprecated,
			"%s: %s does not exist or is deprecated", of, name)
	}
}

// commands reads a table whose first column names commands, each once or repeatedly.
func (t *tables) commands(file string, columns int, once bool,
	each func(row []string, c *protocol.Command, n *protocol.Note),
) (first string) {
	return t.rows(file, columns, once, func(row []string) {
		c, ok := t.p.Command(row[0])
		if t.check(ok && c.Name == row[0], "there is no command %s", row[0]) {
			n := t.notes.Commands[c.Name]
			each(row, c, &n)
			t.notes.Commands[c.Name] = n
		}
	})
}

// rows reads a table whose first column names each thing once or repeatedly, and returns its first line.
func (t *tables) rows(file string, columns int, once bool, each func(row []string)) (first string) {
	text, err := os.ReadFile(filepath.Join(t.folder, file))
	t.at = file
	t.check(err == nil, "%w", err)
	lines, seen := strings.Split(string(text), "\n"), map[string]bool{}
	for i, line := range lines {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		t.at = fmt.Sprintf("%s:%d", file, i+1)
		row := strings.Split(line, "\t")
		name := strings.ToLower(row[0])
		if t.check(len(row) >= columns, "%d columns: expected %d", len(row), columns) &&
			t.check(!once || !seen[name], "%s occurs twice", row[0]) {
			seen[name] = true
			each(row)
		}
	}
	t.at = file
	return lines[0]
}
