package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/parley-tools/parley/cdp/internal/protocol"
)

const namesTable = "names.tsv" // name, replacement or -, as explained in the file

// A description names a member of a domain by a dot, or a command, event, parameter or value by an inner capital.
var (
	description = regexp.MustCompile(`"description": *"(?:[^"\\]|\\.)*"`)
	notName     = regexp.MustCompile(`\\n|https?://\S+`)
	nameLike    = regexp.MustCompile(`\b(?:[A-Z]\w*\.\w+|[a-z]+[A-Z]\w*)`)
)

// correctNames replaces names that the protocol does not have in its descriptions. Generating fails if a description,
// of the protocol or of a table, has another such name.
func correctNames(folder string, documents [][]byte, p *protocol.Protocol) ([][]byte, error) {
	t := tables{folder: folder, p: p}
	replacement, said := map[string]string{}, map[string]bool{}
	t.rows(namesTable, 2, true, func(row []string) { replacement[row[0]] = row[1] })
	all := bytes.Join(documents, nil)
	texts := description.FindAll(all, -1)
	for _, file := range []string{descriptionsTable, briefsTable, whenTable, deprecatedTable} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		t.check(err == nil, "%w", err)
		texts = append(texts, text)
	}
	for _, text := range texts {
		for _, name := range nameLike.FindAll(notName.ReplaceAll(text, []byte(" ")), -1) {
			said[string(name)] = true
		}
	}
	for name := range said {
		t.check(t.has(name, all) || replacement[name] != "", "a description names %s, which the protocol does not have", name)
	}
	for name, right := range replacement {
		t.check(said[name] && !t.has(name, all), "no description names %s, or the protocol has it", name)
		t.check(right == "-" || t.has(right, all), "%s is to be %s, which the protocol does not have", name, right)
		whole := regexp.MustCompile(`(\W|\\n)` + regexp.QuoteMeta(name) + `\b`)
		for i := range documents {
			if right != "-" {
				documents[i] = whole.ReplaceAll(documents[i], []byte("${1}"+right))
			}
		}
	}
	return documents, errors.Join(t.problems...)
}

// has reports whether the documents contain a name. The part before a dot need not be a domain.
func (t *tables) has(name string, documents []byte) bool {
	owner, _, isDotted := strings.Cut(name, ".")
	if !isDotted {
		return bytes.Contains(documents, []byte(`"`+name+`"`))
	}
	d, _ := t.p.Domain(owner)
	c, _ := t.p.Command(name)
	e, _ := t.p.Event(name)
	y, _ := t.p.Type(name)
	return d.Name != owner || c != nil && c.Name == name || e != nil && e.Name == name || y != nil && y.Name == name
}
