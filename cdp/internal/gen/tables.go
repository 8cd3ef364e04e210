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
	problems []error
}

func (t *tables) domains() {
	t.rows(domainsTable, 2, once(func(row []string) error {
		d, ok := t.p.Domain(row[0])
		if !ok || d.Name != row[0] {
			return fmt.Errorf("there is no domain %s", row[0])
		}
		if len(row[1]) > protocol.LineSize {
			return fmt.Errorf("the brief of %s has %d characters; the limit is %d", d.Name, len(row[1]), protocol.LineSize)
		}
		t.notes.Domains[d.Name] = row[1]
		return nil
	}))
	for _, d := range t.p.Domains() {
		if t.notes.Domains[d.Name] == "" {
			t.problem(domainsTable, 0, fmt.Errorf("domain %s is missing", d.Name))
		}
	}
}

func (t *tables) effects() {
	t.commands(effectsTable, 6, func(row []string, c *protocol.Command, n *protocol.Note) error {
		n.Effect = protocol.Effect(row[1])
		if !slices.Contains([]protocol.Effect{protocol.Read, protocol.Write, protocol.Destructive}, n.Effect) {
			return fmt.Errorf("%s has effect %q: expected read, write or destructive", row[0], row[1])
		}
		n.Reach = protocol.Reach(row[2])
		if !slices.Contains([]protocol.Reach{protocol.Page, protocol.Context, protocol.Browser, protocol.Machine}, n.Reach) {
			return fmt.Errorf("%s has reach %q: expected page, context, browser or machine", row[0], row[2])
		}
		var err error
		if n.URL, err = pointers(c, row[3], "url"); err != nil {
			return err
		}
		if n.Files, err = pointers(c, row[4], "path", "file"); err != nil {
			return err
		}
		if len(n.Files) > 0 && n.Reach != protocol.Machine {
			return fmt.Errorf("%s names files of this machine, and its reach is %s", row[0], row[2])
		}
		if row[5] != "-" {
			n.Callers = row[5]
		}
		if n.Callers != "" && !n.InContext() && n.Refusal(true) == "" {
			return fmt.Errorf("%s has callers %q: expected -, context, or plugin: or person: with a reason", row[0], row[5])
		}
		return nil
	})
	for _, name := range t.p.Names() {
		if t.notes.Commands[name].Effect == "" {
			t.problem(effectsTable, 0, fmt.Errorf("command %s is missing", name))
		}
	}
}

func (t *tables) enables() {
	t.rows(enablesTable, 5, once(func(row []string) error {
		if c, ok := t.p.Command(row[0] + ".enable"); !ok || c.Domain != row[0] {
			return fmt.Errorf("there is no command %s.enable", row[0])
		}
		if !slices.Contains([]string{protocol.EnableForAll, protocol.EnableForRead, protocol.EnableForNone}, row[1]) {
			return fmt.Errorf("%s is enabled for %q: expected all, read or none", row[0], row[1])
		}
		e := protocol.Enabling{For: row[1], Needs: list(row[2]), Keeps: list(row[3])}
		for _, needed := range e.Needs {
			if d, ok := t.p.Domain(needed); !ok || d.Name != needed {
				return fmt.Errorf("%s needs %s, which is not a domain", row[0], needed)
			}
		}
		for _, pattern := range e.Keeps {
			one := protocol.Enabling{Keeps: []string{pattern}}
			if !slices.ContainsFunc(t.p.Names(), one.KeptBy) {
				return fmt.Errorf("%s is kept by %s, which matches no command", row[0], pattern)
			}
		}
		t.notes.Enables[row[0]] = e
		return nil
	}))
	for _, name := range t.p.Names() {
		if domain, ok := strings.CutSuffix(name, ".enable"); ok && t.notes.Enables[domain].For == "" {
			t.problem(enablesTable, 0, fmt.Errorf("domain %s is missing", domain))
		}
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
func pointers(c *protocol.Command, column string, words ...string) ([]string, error) {
	switch column {
	case "ref":
		return nil, nil
	case "-":
		for _, p := range c.Params {
			for _, word := range words {
				if strings.Contains(strings.ToLower(p.Name), word) {
					return nil, fmt.Errorf("%s has the parameter %s, which is not reviewed: expected a pointer, or ref", c.Name,
						p.Name)
				}
			}
		}
		return nil, nil
	}
	named := list(column)
	for _, pointer := range named {
		name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/") // types of other parameters are not resolved
		if !slices.ContainsFunc(c.Params, func(p protocol.Param) bool { return p.Name == name }) {
			return nil, fmt.Errorf("%s has no parameter %s", c.Name, pointer)
		}
	}
	return named, nil
}

func (t *tables) briefs() {
	t.commands(briefsTable, 2, func(row []string, _ *protocol.Command, n *protocol.Note) error {
		if len(row[1]) > protocol.LineSize {
			return fmt.Errorf("the brief of %s has %d characters; the limit is %d", row[0], len(row[1]), protocol.LineSize)
		}
		n.Brief = row[1]
		return nil
	})
}

func (t *tables) phrases() {
	t.commands(phrasesTable, 2, func(row []string, _ *protocol.Command, n *protocol.Note) error {
		n.Tasks = strings.Split(row[1], "; ")
		if len(n.Tasks) > maxPhrases {
			return fmt.Errorf("%s has %d phrases; the limit is %d", row[0], len(n.Tasks), maxPhrases)
		}
		for _, task := range n.Tasks {
			if task != strings.TrimSpace(task) || task == "" || len(task) > protocol.BriefSize {
				return fmt.Errorf("%s has the phrase %q: expected at most %d characters without surrounding spaces", row[0], task,
					protocol.BriefSize)
			}
		}
		if len(row) > 2 {
			n.Keywords = strings.Fields(row[2])
		}
		return nil
	})
}

func (t *tables) deprecated() {
	t.commands(deprecatedTable, 3, func(row []string, c *protocol.Command, n *protocol.Note) error {
		if !c.Deprecated {
			return fmt.Errorf("%s is not deprecated", row[0])
		}
		n.Deprecation = row[2]
		if row[1] != "-" {
			use, ok := t.p.Command(row[1])
			if !ok || use.Name != row[1] || use.Deprecated {
				return fmt.Errorf("%s names %s as its replacement, which does not exist or is deprecated itself", row[0], row[1])
			}
			if !strings.Contains(row[2], row[1]) {
				return fmt.Errorf("the message of %s does not name its replacement %s", row[0], row[1])
			}
			n.Use = row[1]
		}
		return nil
	})
	for _, name := range t.p.Names() {
		if c, _ := t.p.Command(name); c.Deprecated && t.notes.Commands[name].Deprecation == "" {
			t.problem(deprecatedTable, 0, fmt.Errorf("command %s is missing", name))
		}
	}
}

func (t *tables) examples() {
	t.rows(examplesTable, 3, t.ofCommand(func(row []string, c *protocol.Command, n *protocol.Note) error {
		if !json.Valid([]byte(row[2])) || !strings.HasPrefix(row[2], "{") {
			return fmt.Errorf("the parameters of %s are not a JSON object: %s", row[0], row[2])
		}
		e := protocol.Example{Title: row[1], Params: json.RawMessage(row[2])}
		if err := t.checkCall(c.Name, protocol.Call{Tool: c.Name, Params: e.Params}); err != nil {
			return err
		}
		if len(row) > 3 && row[3] != "-" {
			e.Needs = row[3]
		}
		if len(row) > 4 {
			e.From = row[4]
		}
		for _, call := range e.Flow().Needs {
			if err := t.checkCall(c.Name, call); err != nil {
				return err
			}
		}
		n.Examples = append(n.Examples, e)
		return nil
	}))
}

func (t *tables) values() {
	folds := map[string]bool{}
	t.rows(valuesTable, 2, func(row []string) error {
		fold := strings.ToLower(row[0])
		if folds[fold] {
			return fmt.Errorf("%s occurs twice", row[0])
		}
		folds[fold] = true
		if !json.Valid([]byte(row[1])) {
			return fmt.Errorf("the value of %s is not JSON: %s", row[0], row[1])
		}
		t.notes.Values[row[0]] = row[1]
		if strings.Contains(row[0], " ") {
			return nil // by type and name, wherever it occurs
		}
		parts := strings.SplitN(row[0], ".", 3)
		if len(parts) < 2 {
			return fmt.Errorf("%s is not Domain.Type, Domain.command.parameter or Domain.Type.property", row[0])
		}
		owner := parts[0] + "." + parts[1]
		var fields []protocol.Param
		if c, ok := t.p.Command(owner); ok && len(parts) == 3 {
			fields = c.Params
		} else if y, ok := t.p.Type(owner); ok {
			fields = y.Fields
		} else {
			return fmt.Errorf("there is no %s", owner)
		}
		if len(parts) == 3 && !slices.ContainsFunc(fields, func(q protocol.Param) bool { return q.Name == parts[2] }) {
			return fmt.Errorf("%s has no %s", owner, parts[2])
		}
		return nil
	})
}

// params reads which parameters come first. They are optional ones: the required ones come before them anyway.
func (t *tables) params() {
	t.commands(paramsTable, 2, func(row []string, c *protocol.Command, _ *protocol.Note) error {
		names := strings.Fields(row[1])
		for i, name := range names {
			fits := func(q protocol.Param) bool { return q.Name == name && q.Optional }
			if !slices.ContainsFunc(c.Params, fits) || slices.Contains(names[:i], name) {
				return fmt.Errorf("%s has no optional parameter %s, or the row names it twice", row[0], name)
			}
		}
		t.notes.Order[c.Name] = names
		return nil
	})
}

// descriptions reads texts for what the protocol does not describe. Each must be needed.
func (t *tables) descriptions() {
	needed := t.p.Undescribed()
	t.rows(descriptionsTable, 2, once(func(row []string) error {
		domain, parameter, all := strings.Cut(row[0], ".*.")
		fits := func(name string) bool {
			return name == row[0] || all && strings.HasPrefix(name, domain+".") && strings.HasSuffix(name, "."+parameter) &&
				strings.Count(name, ".") == 2
		}
		if !slices.ContainsFunc(needed, fits) {
			return fmt.Errorf("the protocol describes %s, or has nothing of this name", row[0])
		}
		t.notes.Descriptions[row[0]] = row[1]
		return nil
	}))
}

func (t *tables) when() {
	t.commands(whenTable, 4, func(row []string, c *protocol.Command, n *protocol.Note) error {
		for _, text := range row[1:3] {
			if len(text) > maxWhen {
				return fmt.Errorf("a text of %s has %d characters; the limit is %d", row[0], len(text), maxWhen)
			}
			if err := t.checkNames(text); err != nil {
				return fmt.Errorf("%s: %w", row[0], err)
			}
		}
		if n.When = row[1]; row[2] != "-" {
			n.WhenNot = row[2]
		}
		if row[3] == "-" {
			return nil
		}
		for _, one := range strings.Split(row[3], "; ") {
			tool, why, ok := strings.Cut(one, ": ")
			if !ok || tool == c.Name || len(why) > maxWhen {
				return fmt.Errorf("%s has %q as related: expected another tool, a colon and why", row[0], one)
			}
			if err := t.checkNames(tool); err != nil {
				return fmt.Errorf("%s: %w", row[0], err)
			}
			n.Related = append(n.Related, protocol.Related{Tool: tool, Why: why})
		}
		return nil
	})
}

var dottedName = regexp.MustCompile(`\b[A-Z]\w*\.\w+`)

// checkNames checks that the commands and events that a text names exist, and that the commands are not deprecated.
func (t *tables) checkNames(text string) error {
	for _, name := range dottedName.FindAllString(text, -1) {
		if e, ok := t.p.Event(name); ok && e.Name == name {
			continue
		}
		if c, ok := t.p.Command(name); !ok || c.Name != name || c.Deprecated {
			return fmt.Errorf("%s does not exist or is deprecated", name)
		}
	}
	return nil
}

// once reads a table whose first column names each thing at most once.
func once(each func(row []string) error) func(row []string) error {
	seen := map[string]bool{}
	return func(row []string) error {
		if seen[row[0]] {
			return fmt.Errorf("%s occurs twice", row[0])
		}
		seen[row[0]] = true
		return each(row)
	}
}

// commands reads a table with one row for a command, which its first column names.
func (t *tables) commands(file string, columns int, each commandRow) {
	t.rows(file, columns, once(t.ofCommand(each)))
}

type commandRow func(row []string, c *protocol.Command, n *protocol.Note) error

// ofCommand reads a row for a command, which its first column names.
func (t *tables) ofCommand(each commandRow) func(row []string) error {
	return func(row []string) error {
		c, ok := t.p.Command(row[0])
		if !ok || c.Name != row[0] {
			return fmt.Errorf("there is no command %s", row[0])
		}
		n := t.notes.Commands[c.Name]
		err := each(row, c, &n)
		t.notes.Commands[c.Name] = n
		return err
	}
}

// rows reads a table and returns its first line.
func (t *tables) rows(file string, columns int, each func(row []string) error) (first string) {
	text, err := os.ReadFile(filepath.Join(t.folder, file))
	if err != nil {
		t.problems = append(t.problems, err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(line, "\t")
		err := fmt.Errorf("%d columns: expected %d", len(row), columns)
		if len(row) >= columns {
			err = each(row)
		}
		if err != nil {
			t.problem(file, i+1, err)
		}
	}
	return lines[0]
}

func (t *tables) problem(file string, line int, err error) {
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	t.problems = append(t.problems, fmt.Errorf("%s: %w", file, err))
}
