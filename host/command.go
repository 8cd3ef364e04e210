package host

import (
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// Command is what a line for a shell would have this program do with the catalog, as far as its words tell: what stands in tutorials
// and in what to do next is written so.
type Command struct {
	Op    string   // "call", "describe", "search" or "list"
	At    Address  // what is called, described or listed, or searched in; the zero value is the whole catalog
	Query string   // of a search
	Rest  []string // the words after the name of what is called or described
}

// Command reads a line. It reports false for one that does something else, or names what does not exist.
func (c *Catalog) Command(line string) (Command, bool) {
	words, ok := manifest.ShellWords(line)
	if !ok || len(words) < 2 || words[0] != "parley" {
		return Command{}, false
	}
	words = words[1:]
	switch words[0] {
	case "search":
		return Command{Op: "search", Query: after(words, "search")}, len(words) > 1
	case "--list":
		return Command{Op: "list"}, true
	case "call":
		words = words[1:]
	}
	if len(words) == 0 {
		return Command{}, false
	}
	plugin, local, _ := strings.Cut(words[0], ".")
	rest := words[1:]
	if local == "" && len(rest) > 0 && !strings.HasPrefix(rest[0], "--") {
		local, rest = rest[0], rest[1:]
	}
	at, err := c.FindIn(plugin, local)
	command := Command{Op: "call", At: at, Rest: rest}
	switch {
	case slices.Contains(rest, "--search"):
		command.Op, command.Query = "search", after(rest, "--search")
	case slices.Contains(rest, "--describe") || at.Entry != nil:
		command.Op = "describe"
	case slices.Contains(rest, "--listen"):
		return Command{}, false
	case slices.Contains(rest, "--list") || at.Tool == nil:
		command.Op = "list"
	}
	return command, err == nil
}

// after is the word that follows another; "" where none does.
func after(words []string, word string) string {
	if i := slices.Index(words, word); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}
