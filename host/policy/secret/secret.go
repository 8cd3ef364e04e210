// Package secret reads secrets from where the operator keeps them: a variable of the environment, a file, the output
// of a program, or the store of the host.
package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/origin"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/internal/durable"
)

// Max is the size limit of a secret, in bytes.
const Max = 64 << 10

// ErrNone means that the store has no secret of a name.
var ErrNone = errors.New("no secret of that name is stored")

// timeout limits a command that prints a secret.
const timeout = 15 * time.Second

// IsName reports whether s is a valid name for a secret, or for a variable of the environment.
func IsName(s string) bool {
	const digits = "0123456789"
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_" + digits
	return s != "" && len(s) <= 200 && strings.Trim(s, all) == "" && !strings.Contains(digits, s[:1])
}

// Check returns why a text is not a source of a secret: "env:NAME", "file:PATH", "store" or "cmd:PROGRAM ARGUMENTS".
func Check(from string) error {
	kind, rest, _ := strings.Cut(from, ":")
	switch {
	case from == "store", kind == "env" && IsName(rest), kind == "file" && filepath.IsAbs(rest):
		return nil
	case kind == "file":
		return fmt.Errorf("%s: the path must be absolute", origin.Quote(from))
	case kind == "cmd":
		words, err := Words(rest)
		if err == nil && filepath.Base(words[0]) != words[0] && !filepath.IsAbs(words[0]) {
			err = fmt.Errorf("%s: the program must be a name or an absolute path", origin.Quote(from))
		}
		return err
	}
	return fmt.Errorf("from must be \"env:NAME\", \"file:PATH\", \"store\" or \"cmd:PROGRAM ARGUMENTS\", not %s",
		origin.Quote(from))
}

// Words splits a command at white space; single and double quotes keep words together. There is no shell.
func Words(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	openQuote := rune(0)
	for _, r := range s {
		switch {
		case openQuote != 0 && r == openQuote:
			openQuote = 0
		case openQuote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			openQuote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if openQuote != 0 {
		return nil, fmt.Errorf("command %s has an unclosed quote", origin.Quote(s))
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, fmt.Errorf("cmd: requires a program")
	}
	return words, nil
}

// Files returns the files of a source that [Check] has checked: the file with the secret, or the program and the files
// that its command line names.
func Files(from string) (paths []string) {
	kind, rest, _ := strings.Cut(from, ":")
	switch kind {
	case "file":
		return []string{rest}
	case "cmd":
		words, _ := Words(rest)
		for i, word := range words {
			if found, err := exec.LookPath(word); i == 0 && err == nil {
				word = found
			}
			if filepath.IsAbs(word) {
				paths = append(paths, word)
			}
		}
	}
	return paths
}

// Fetch reads a secret from a source. For a login it returns the stored text; see [ParseLogin]. The error never
// contains any part of the value; it is [ErrNone] if the store has nothing of that name.
func Fetch(ctx context.Context, name, from string, lookup func(string) (string, bool), store Store) (string, error) {
	kind, rest, _ := strings.Cut(from, ":")
	switch kind {
	case "env":
		value, ok := lookup(rest)
		if !ok {
			return "", fmt.Errorf("the environment variable %s is not set", rest)
		}
		return value, nil
	case "file":
		return readFile(rest, protect.WritableByAll, "everybody can write to it")
	case "cmd":
		return run(ctx, rest)
	}
	return store.get(name)
}

// run returns what a program prints. Its stderr is dropped, because it may contain the secret, too. It runs in the root
// folder: files of the working folder may be anybody's.
func run(ctx context.Context, command string) (string, error) {
	words, _ := Words(command) // see [Check]
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = string(filepath.Separator)
	cmd.WaitDelay = time.Second // a child of the program may keep the pipe open
	out := &boundedBuffer{}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not end in time", origin.Quote(words[0]))
	case err != nil:
		return "", fmt.Errorf("%s failed: %w", origin.Quote(words[0]), err)
	}
	return out.String(), nil
}

// boundedBuffer keeps a little more than the largest secret and drops the rest.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(data []byte) (int, error) {
	if free := Max + 3 - b.Len(); free > 0 {
		b.Buffer.Write(data[:min(free, len(data))])
	}
	return len(data), nil
}

// readFile reads a file unless tooOpen reports that others have too many rights to it.
func readFile(path string, tooOpen func(fs.FileInfo) bool, tooOpenReason string) (string, error) {
	f, info, err := protect.Open(path, Max+2) // and a line break
	if _, refused := errors.AsType[*protect.FileError](err); refused {
		return "", err
	} else if err != nil {
		return "", fmt.Errorf("%s: %w", path, host.WithoutPath(err))
	}
	defer f.Close()
	if tooOpen(info) {
		return "", fmt.Errorf("%s: %s", path, tooOpenReason)
	}
	data, err := protect.ReadAll(f, info, Max+2)
	return string(data), err
}

// Store keeps secrets in files of mode 0600 in a folder of mode 0700.
type Store struct{ Dir string }

// The prefix avoids names such as CON, which Windows reserves in every folder.
const storePrefix = "secret-"

// Set stores a value under a name, and replaces an older one.
func (s Store) Set(name, value string) error {
	if !IsName(name) {
		return host.Errorf(host.InvalidArgs, "%s is not a valid name for a secret: expected letters, digits and underscores",
			origin.Quote(name))
	}
	if value == "" || len(value) > Max {
		return host.Errorf(host.InvalidArgs, "a secret has 1 to %d bytes; this one has %d", Max, len(value))
	}
	names, err := s.Names()
	if err != nil {
		return err
	}
	// Some file systems ignore case.
	if i := slices.IndexFunc(names, func(n string) bool { return n != name && strings.EqualFold(n, name) }); i >= 0 {
		return host.Errorf(host.AlreadyExists, "there is already a secret %s, and names do not differ by case", names[i])
	}
	if err = os.MkdirAll(s.Dir, 0o700); err == nil {
		err = durable.Write(filepath.Join(s.Dir, storePrefix+name), []byte(value))
	}
	if err != nil {
		return host.Errorf(host.ConfigError, "secret %s cannot be stored in %s: %v", name, s.Dir, host.WithoutPath(err))
	}
	return nil
}

// Names returns the names of the stored secrets, sorted.
func (s Store) Names() ([]string, error) {
	names := []string{}
	if s.Dir == "" {
		return nil, host.Errorf(host.ConfigError, "there is no folder for secrets")
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, host.Errorf(host.ConfigError, "%s cannot be read: %v", s.Dir, host.WithoutPath(err))
	}
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), storePrefix); ok && IsName(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove deletes a secret. The error is not_found if there is none.
func (s Store) Remove(name string) error {
	names, err := s.Names()
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return host.Errorf(host.NotFound, "there is no secret %s",
			origin.Quote(name)).WithSteps(step.Operator(step.OpSecretList))
	}
	if err := os.Remove(filepath.Join(s.Dir, storePrefix+name)); err != nil {
		return host.Errorf(host.ConfigError, "secret %s cannot be removed: %v", name, host.WithoutPath(err))
	}
	return nil
}

func (s Store) get(name string) (string, error) {
	if s.Dir == "" || !IsName(name) {
		return "", errors.New("there is no secret store")
	}
	for _, dir := range []string{filepath.Dir(s.Dir), s.Dir} {
		if err := protect.CheckFolder(dir); err != nil {
			return "", err
		}
	}
	shared := func(info fs.FileInfo) bool { return !protect.OwnerOnly(info) }
	value, err := readFile(filepath.Join(s.Dir, storePrefix+name), shared,
		"others may read it: chmod 600 it and change the secret")
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNone
	}
	return value, err
}
