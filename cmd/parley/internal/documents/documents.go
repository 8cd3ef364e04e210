// Package documents has the documents of docs/ that are embedded in the binary, and prints them.
package documents

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/internal/lazy"
)

// documentsGzip is a JSON object with the texts of docs/, by their names without .md.
//
//go:generate go test -run TestDocuments -update .
//go:embed documents.gz
var documentsGzip []byte

// maxDocument is the maximum size of a document in bytes, so that it fits in a reply to an agent.
const maxDocument = 24 << 10

// documents returns the documents of the binary by their topics. A test reads all of them, so none is broken.
var documents = sync.OnceValue(func() (texts map[string]string) {
	unpacked, err := gzip.NewReader(bytes.NewReader(documentsGzip))
	if err == nil {
		_ = json.NewDecoder(io.LimitReader(unpacked, 1<<20)).Decode(&texts)
	}
	return texts
})

// Topics returns the names of the documents, sorted.
func Topics() []string { return slices.Sorted(maps.Keys(documents())) }

// Find returns the document that a word names. The word may be a file: "policy", "docs/policy.md".
func Find(word string) (topic, text string, found bool) {
	topic = strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(word), "docs/"), ".md")
	text, found = documents()[topic]
	return topic, text, found
}

// Print prints a document, or only the sections whose headings have the words. The error is not_found, and lists the
// headings.
func Print(a *command.App, topic, text string, words []string) error {
	if words := strings.ToLower(strings.Join(words, " ")); words != "" {
		sections := strings.Split("\n"+text, "\n## ")[1:]
		text = ""
		for _, section := range sections {
			heading, _, _ := strings.Cut(section, "\n")
			if strings.Contains(strings.ToLower(heading), words) {
				text += "## " + section + "\n"
			}
		}
		if text == "" {
			titles := command.Map(sections, func(s string) string { title, _, _ := strings.Cut(s, "\n"); return title })
			return host.Errorf(host.NotFound, "%s has no section %s; its sections are %s",
				topic, host.Printable(words), strings.Join(titles, ", ")).WithNext("parley help " + topic + ".md")
		}
	}
	if a.JSON {
		return a.PrintDocument(struct {
			Topic string `json:"topic"`
			Text  string `json:"text"`
		}{topic, text})
	}
	return command.WriteText(a, func(w io.Writer) { renderDocument(a.Page(w), text) })
}

var (
	docLink    = lazy.Pattern(`\[([^\]]*)\]\(([^)]*)\)`)
	docComment = lazy.Pattern(`(?m)^<!--.*-->\n`)
)

// renderDocument writes Markdown as text: headings are highlighted, code is indented, and links show only their
// texts.
func renderDocument(p *command.Page, text string) {
	inCode := false
	for line := range strings.Lines(strings.TrimSpace(docComment().ReplaceAllString(text, "")) + "\n") {
		line = strings.TrimRight(line, "\n")
		heading := strings.TrimLeft(line, "#")
		switch {
		case strings.HasPrefix(line, "```"):
			inCode = !inCode
		case inCode:
			fmt.Fprintln(p.W, "    "+line)
		case heading != line && strings.HasPrefix(heading, " "):
			fmt.Fprintln(p.W, p.Style(command.Bold, strings.TrimSpace(heading)))
		default:
			fmt.Fprintln(p.W, docLink().ReplaceAllString(line, "$1"))
		}
	}
}
