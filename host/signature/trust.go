package signature

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// TrustFile is the name of the operator's list of trusted keys, in the configuration folder. Each line is a key and,
// after a space, the operator's name for it. Empty lines and lines that begin with # are ignored.
const TrustFile = "trusted.keys"

const trustHeader = `# Keys whose signatures count, one a line: KEY NAME. "parley plugin trust" adds and removes lines.
`

// maxName is the size limit of the operator's name for a key, in bytes.
const maxName = 100

// TrustedKey is a key that the operator trusts.
type TrustedKey struct {
	Key  Key    `json:"key"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"` // the operator's name for the key; unique, without regard to case
	line int
}

// String returns the key's line in the list.
func (t TrustedKey) String() string { return strings.TrimSpace(string(t.Key) + " " + t.Name) }

// File reads and replaces the file of the list, with the checks that an operator's file needs; see operator.File.
// Read returns exists false only if nothing has the name. Replace writes nothing and returns busy if the file no longer
// holds the old text.
type File interface {
	Read() (data []byte, exists bool, err error)
	Replace(old, text string) error
}

// Trust is the operator's list of trusted keys. Each method reads it again, so that withdrawn trust takes effect at
// once.
type Trust struct {
	Path string // path of the file, for messages
	File File
}

// Keys returns the trusted keys in the order of the list, or none if there is no file. If the file exists but cannot be
// read in full, the error is a *host.Error of code config_error, with FILE:LINE where a line is invalid: it never means
// that no key is trusted.
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
		return "", nil, host.Errorf(host.ConfigError, "%s:%d: %s", t.Path, line,
			manifest.CleanLine(err.Error())).WithSteps(step.Operator(step.OpPolicyCheck))
	}
	return string(data), keys, nil
}

// parseTrusted parses the list. line is where the error is.
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
			return nil, line, fmt.Errorf("expected KEY NAME or a line that begins with #, and %q is not a key: %w",
				manifest.CleanLine(word), err)
		}
		entry := TrustedKey{key, key.ID(), strings.Trim(name, " \t"), line}
		if err := checkEntry(entry, keys); err != nil {
			return nil, line, err
		}
		keys = append(keys, entry)
	}
	return keys, 0, nil
}

// checkEntry returns an error if an entry is invalid or conflicts with another.
func checkEntry(entry TrustedKey, others []TrustedKey) error {
	name := entry.Name
	if manifest.CleanLine(name) != name || !utf8.ValidString(name) || len(name) > maxName {
		return fmt.Errorf("%q is not a valid name for a key: expected at most %d visible bytes with single spaces",
			manifest.CleanLine(name), maxName)
	}
	if _, err := ParseKey(name); err == nil {
		return fmt.Errorf("the name of a key is itself a key; write each on its own line")
	}
	for _, o := range others {
		switch {
		case o.Key == entry.Key:
			return fmt.Errorf("the key %s is already in line %d", o.Key, o.line)
		case name != "" && strings.EqualFold(o.Name, name):
			return fmt.Errorf("another key is named %s, in line %d", o.Name, o.line)
		}
	}
	return nil
}

// Change is a prepared change of the list, to be reviewed before [Trust.Write] makes it.
type Change struct {
	Path    string
	Entry   TrustedKey
	Removed bool // false: added
	oldText string
	newText string
}

// Diff returns the change as lines, the last of which begins with "+" or "-".
func (c Change) Diff() string {
	sign := "+"
	if c.Removed {
		sign = "-"
	}
	return fmt.Sprintf("%s: trusted keys\n%s %s\n", c.Path, sign, c.Entry)
}

// Add prepares to add a key; name may be "". The error is already_exists if the key is in the list.
func (t *Trust) Add(key Key, name string) (Change, error) {
	text, keys, err := t.read()
	if err != nil {
		return Change{}, err
	}
	entry := TrustedKey{Key: key, ID: key.ID(), Name: name}
	if i := slices.IndexFunc(keys, func(o TrustedKey) bool { return o.Key == key }); i >= 0 {
		return Change{}, host.Errorf(host.AlreadyExists, "the key %s is already trusted, in line %d of %s", keys[i],
			keys[i].line, t.Path).
			WithSteps(step.Operator(step.OpPluginTrust, "--list"))
	}
	if err := checkEntry(entry, keys); err != nil {
		return Change{}, host.Errorf(host.InvalidArgs, "%s", err).WithSteps(step.Operator(step.OpPluginTrust, "--list"))
	}
	whole := cmp.Or(text, trustHeader)
	if !strings.HasSuffix(whole, "\n") {
		whole += "\n"
	}
	return Change{Path: t.Path, Entry: entry, oldText: text, newText: whole + entry.String() + "\n"}, nil
}

// Remove prepares to remove a key, given as the key itself or by its name. The error is not_found if it is not in the
// list.
func (t *Trust) Remove(keyOrName string) (Change, error) {
	text, keys, err := t.read()
	if err != nil {
		return Change{}, err
	}
	i := slices.IndexFunc(keys, func(o TrustedKey) bool {
		return string(o.Key) == keyOrName || o.Name != "" && strings.EqualFold(o.Name, keyOrName)
	})
	if i < 0 {
		return Change{}, host.Errorf(host.NotFound, "%q is not a trusted key; expected the key itself or its name",
			manifest.CleanLine(keyOrName)).
			WithSteps(step.Operator(step.OpPluginTrust, "--list"))
	}
	lines := slices.Collect(strings.Lines(text))
	rest := strings.Join(slices.Delete(lines, keys[i].line-1, keys[i].line), "")
	return Change{Path: t.Path, Entry: keys[i], Removed: true, oldText: text, newText: rest}, nil
}

// Write makes a prepared change. If the list has changed since, it writes nothing and returns busy.
func (t *Trust) Write(c Change) error { return t.File.Replace(c.oldText, c.newText) }
