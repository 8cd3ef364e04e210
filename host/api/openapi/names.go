package openapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/manifest/lint/letters"
)

// maxName is the size limit of each half of a tool's name.
const maxName = 64

// ascii returns a name with ASCII letters for Latin ones with diacritics.
func ascii(s string) string {
	if letters.IsASCII(s) {
		return s
	}
	s = strings.NewReplacer("ß", "ss", "Æ", "AE", "æ", "ae", "Œ", "OE", "œ", "oe").Replace(s)
	return strings.Map(func(r rune) rune {
		switch folded := []rune(letters.Fold(string(r))); {
		case len(folded) == 0: // a diacritic alone
			return -1
		case unicode.IsUpper(r) && unicode.Is(unicode.Latin, r):
			return unicode.ToUpper(folded[0])
		case unicode.Is(unicode.Latin, r):
			return folded[0]
		}
		return r
	}, s)
}

// words splits a name at capitals, and where it has neither a letter nor a digit: "getUserByID" is get, user, by, id.
func words(s string) (all []string) {
	runes, word := []rune(ascii(s)), []rune{}
	end := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
		}
		word = nil
	}
	for i, r := range runes {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) ||
			i+1 < len(runes) && unicode.IsLower(runes[i+1]) && runes[i+1] != 's') {
			end()
		}
		word = append(word, r)
	}
	end()
	return all
}

// kebab makes a name from words. It begins with a letter.
func kebab(all []string) string {
	name := strings.Join(all, "-")
	if name != "" && !unicode.IsLetter(rune(name[0])) {
		name = "n-" + name
	}
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName], "-")
	}
	return name
}

// isSame reports whether words are the same but for a plural.
func isSame(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool { return singular(a) == singular(b) })
}

func singular(s string) string {
	if stem, ok := strings.CutSuffix(s, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(s, "s")
}

// without removes the words of a tag from the name of an operation: at its start, after its verb, or at its end. A name
// that is the tag alone stays.
func without(name, tag []string) []string {
	n := len(tag)
	if n == 0 || len(name) <= n {
		return name
	}
	for _, at := range []int{0, 1, len(name) - n} {
		if at+n <= len(name) && isSame(name[at:at+n], tag) {
			return slices.Delete(slices.Clone(name), at, at+n)
		}
	}
	return name
}

// pathWords returns the words of a path, without its parameters, versions, "api" and "rest".
func pathWords(path string) (all []string) {
	for part := range strings.SplitSeq(path, "/") {
		list := words(part)
		isVersion := len(list) > 0 && len(list[0]) > 1 && list[0][0] == 'v' && strings.Trim(list[0][1:], "0123456789") == ""
		if strings.Contains(part, "{") || isVersion || part == "api" || part == "rest" {
			continue
		}
		all = append(all, list...)
	}
	return all
}

// names gives each tool a name of its own.
type names struct {
	plugins []string // names of other plugins
	taken   map[string]bool
	groups  map[string]string // name -> tag
	renamed []string
	numbers map[string]int // by name: the last number that was added to it
}

func newNames(plugins []string) *names {
	return &names{plugins: plugins, taken: map[string]bool{}, groups: map[string]string{}, numbers: map[string]int{}}
}

// maxGroups is how many groups a manifest may have. Further operations share one more group.
const maxGroups = 1000

// group returns the group of an operation, and the words of its tag.
func (n *names) group(o *operation) (group string, tag []string) {
	given := text(append(slices.Clone(list(o.fields["tags"])), "")[0])
	if tag = words(given); len(tag) == 0 {
		tag = pathWords(o.path)
		tag = tag[:min(len(tag), 1)]
	}
	if len(tag) == 0 {
		tag = []string{"default"}
	}
	if group = kebab(tag); slices.Contains(n.plugins, group) { // its tools would be mistaken for those of the plugin
		group = kebab(append(slices.Clone(tag), "api"))
	}
	if n.groups[group] == "" && len(n.groups) >= maxGroups-1 {
		group, tag = "other", nil
		n.groups[group] = group
	}
	n.groups[group] = cmp.Or(n.groups[group], given, group)
	return group, tag
}

// tool returns the name of the tool of an operation, with its group.
func (n *names) tool(o *operation) (name, group string) {
	group, tag := n.group(o)
	id := words(text(o.fields["operationId"]))
	if len(id) == 0 {
		id = append([]string{strings.ToLower(o.method)}, pathWords(o.path)...)
		if parts := strings.Split(strings.TrimRight(o.path, "/"), "/"); strings.Contains(parts[len(parts)-1], "{") {
			id = append(append(id, "by"), words(parts[len(parts)-1])...)
		}
	}
	own := without(id, tag)
	tries := [][]string{own}
	for _, word := range slices.Backward(pathWords(o.path)) {
		if !slices.Contains(own, word) && !isSame([]string{word}, tag) {
			tries = append(tries, append(slices.Clone(own), word))
		}
	}
	tries = append(tries, append(slices.Clone(own), strings.ToLower(o.method)))
	for i, try := range tries {
		if full := group + "." + kebab(try); !n.taken[full] {
			return n.take(full, i == 0), group
		}
	}
	base := kebab(own)
	base = base[:min(len(base), maxName-6)]
	for stem := group + "." + base; ; {
		n.numbers[stem]++
		if full := fmt.Sprintf("%s-%d", stem, n.numbers[stem]+1); !n.taken[full] {
			return n.take(full, false), group
		}
	}
}

func (n *names) take(full string, isOwn bool) string {
	n.taken[full] = true
	if !isOwn {
		n.renamed = append(n.renamed, full)
	}
	return full
}

var destructive = strings.Fields(`delete remove revoke purge destroy cancel terminate kick ban wipe drop archive erase
	truncate uninstall clear reset expire deactivate`)

// effect returns what a call may change, by the method, the words of the name, and the verb with which the id or the
// path begins or ends.
func effect(o *operation, name string) string {
	_, local, _ := strings.Cut(name, ".")
	list, id := strings.Split(local, "-"), words(text(o.fields["operationId"]))
	if len(id) == 0 {
		id = append(list, pathWords(o.path)...)
	}
	isDestructive := func(word string) bool { return slices.Contains(destructive, word) }
	reads := o.method == "GET" || o.method == "HEAD"
	switch {
	case o.method == "DELETE", isDestructive(list[0]), isDestructive(id[0]),
		!reads && (isDestructive(id[len(id)-1]) || slices.ContainsFunc(list, isDestructive)):
		return "destructive"
	case reads:
		return "read"
	}
	return "write"
}
