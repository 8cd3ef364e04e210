package signature

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// TrustFile is the name of the operator's list of trusted keys, in the folder of the configuration. Each line is a key and,
// after a space, what the operator calls it; empty lines and those that begin with # say nothing.
const TrustFile = "trusted.keys"

const trustHeader = `# Keys whose signatures count, one a line: KEY NAME. "parley plugin trust" adds and removes lines.
`

// maxName bounds what the operator calls a key, in bytes.
const maxName = 100

// TrustedKey is a key that the operator trusts.
type TrustedKey struct {
	Key  Key    `json:"key"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"` // what the operator calls it; no two are the same but for case
	line int
}

// String is the key's line in the list.
func (t TrustedKey) String() string { return strings.TrimSpace(string(t.Key) + " " + t.Name) }

// File reads and replaces the operator's list with the care that an operator's file needs: host/policy has it. Read says
// there is false only if nothing of the name exists. Replace writes nothing (busy) unless the file holds the old text still.
type File interface {
	Read() (data []byte, exists bool, err error)
	Replace(old, text string) error
}

// Trust is the operator's list of trusted keys. It is read anew for each question, so that withdrawn trust counts at once.
type Trust struct {
	Path string // of the file, for messages
	File File
}

// Keys returns the trusted keys in the order of the list; without a file there are none. A file that is there and cannot be
// read in full is a *host.Error of code config_error, with FILE:LINE where a line is wrong: it never means that nothing is trusted.
func (t *Trust) Keys() ([]TrustedKey, error) {
	_, keys, err := t.read()
	return keys, err
}

func (t *Trust) read() (string, []TrustedKey, error) {
	data, _, err := t.File.Read()
	if err != nil {
		return "", nil, err
	}
	keys, line, err := parseTrusted(string(data))
	if err != nil {
		return "", nil, host.Errorf(host.ConfigError, "%s:%d: %s", t.Path, line, manifest.CleanLine(err.Error())).WithNext("parley policy check")
	}
	return string(data), keys, nil
}

// parseTrusted reads the list. Of an error it says the line.
func parseTrusted(text string) (keys []TrustedKey, line int, err error) {
	for raw := range strings.Lines(text) {
		line++
		raw = strings.TrimRight(raw, "\r\n")
		if strings.Trim(raw, " \t") == "" || strings.HasPrefix(raw, "#") {
			continue
		}
		word, name, _ := strings.Cut(raw, " ")
		key, err := ParseKey(word)
		if err != nil {
			return nil, line, fmt.Errorf("expected KEY NAME or a line that begins with #, and %q is no key: %w", manifest.CleanLine(word), err)
		}
		entry := TrustedKey{key, key.ID(), strings.Trim(name, " \t"), line}
		if err := checkEntry(entry, keys); err != nil {
			return nil, line, err
		}
		keys = append(keys, entry)
	}
	return keys, 0, nil
}

// checkEntry tells whether an entry may stand beside others.
func checkEntry(entry TrustedKey, others []TrustedKey) error {
	name := entry.Name
	if manifest.CleanLine(name) != name || !utf8.ValidString(name) || len(name) > maxName {
		return fmt.Errorf("%q is no name for a key: expected at most %d bytes that can be seen, with single spaces", manifest.CleanLine(name), maxName)
	}
	if _, err := ParseKey(name); err == nil {
		return fmt.Errorf("the name of a key is a key itself; write each on a line of its own")
	}
	for _, o := range others {
		switch {
		case o.Key == entry.Key:
			return fmt.Errorf("the key %s stands in line %d already", o.Key, o.line)
		case name != "" && strings.EqualFold(o.Name, name):
			return fmt.Errorf("another key is called %s, in line %d", o.Name, o.line)
		}
	}
	return nil
}

// Change is a change of the list that has not been made: somebody looks at it before Write.
type Change struct {
	Path    string
	Entry   TrustedKey
	Removed bool // rather than added
	oldText string
	newText string
}

// Diff shows the change in lines, the last of which begins with "+" or "-".
func (c Change) Diff() string {
	sign := "+"
	if c.Removed {
		sign = "-"
	}
	return fmt.Sprintf("%s: trusted keys\n%s %s\n", c.Path, sign, c.Entry)
}

// Add prepares to trust a key; name may be "". A key that is trusted already is already_exists.
func (t *Trust) Add(key Key, name string) (Change, error) {
	text, keys, err := t.read()
	if err != nil {
		return Change{}, err
	}
	entry := TrustedKey{Key: key, ID: key.ID(), Name: name}
	if i := slices.IndexFunc(keys, func(o TrustedKey) bool { return o.Key == key }); i >= 0 {
		return Change{}, host.Errorf(host.AlreadyExists, "the key %s is trusted already, in line %d of %s", keys[i], keys[i].line, t.Path).
			WithNext("parley plugin trust --list")
	}
	if err := checkEntry(entry, keys); err != nil {
		return Change{}, host.Errorf(host.InvalidArgs, "%s", err).WithNext("parley plugin trust --list")
	}
	whole := text
	if whole == "" {
		whole = trustHeader
	}
	if !strings.HasSuffix(whole, "\n") {
		whole += "\n"
	}
	return Change{Path: t.Path, Entry: entry, oldText: text, newText: whole + entry.String() + "\n"}, nil
}

// Remove prepares to trust a key no longer. It may be given as the key or by its name; not_found if it is not in the list.
func (t *Trust) Remove(keyOrName string) (Change, error) {
	text, keys, err := t.read()
	if err != nil {
		return Change{}, err
	}
	i := slices.IndexFunc(keys, func(o TrustedKey) bool {
		return string(o.Key) == keyOrName || o.Name != "" && strings.EqualFold(o.Name, keyOrName)
	})
	if i < 0 {
		return Change{}, host.Errorf(host.NotFound, "no trusted key is %q; expected the key itself or its name", manifest.CleanLine(keyOrName)).
			WithNext("parley plugin trust --list")
	}
	lines := slices.Collect(strings.Lines(text))
	rest := strings.Join(slices.Delete(lines, keys[i].line-1, keys[i].line), "")
	return Change{Path: t.Path, Entry: keys[i], Removed: true, oldText: text, newText: rest}, nil
}

// Write makes a prepared change. If the list was changed since, nothing is written and the error is busy.
func (t *Trust) Write(c Change) error { return t.File.Replace(c.oldText, c.newText) }
