package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
)

// MaxSecret is the size limit of a secret, in bytes.
const MaxSecret = 64 << 10

// secretTimeout limits a command that prints a secret.
const secretTimeout = 15 * time.Second

// Secret returns the value of a secret, from the source in [secrets.NAME] or else from the store, without one line
// break at its end. It does not check who may have it: grants do. The error is config_error and never contains any of
// the value.
func (p *Policy) Secret(ctx context.Context, name string) (string, error) {
	s, err := p.current()
	if err != nil {
		return "", err
	}
	src := source{from: "store"}
	for _, f := range s.files() {
		if found, ok := f.secrets[name]; ok {
			src = found
			break
		}
	}
	value, err := p.fetch(ctx, name, src.from)
	if err != nil {
		at := ""
		if src.pos.file != "" {
			at = " (" + src.pos.String() + ")"
		}
		return "", host.Errorf(host.ConfigError, "secret %s has no value: %v%s", quote(name), host.WithoutPath(err),
			at).WithSteps(host.OperatorStep(host.OpSecretSet, name))
	}
	if value = withoutLineBreak(value); value == "" || len(value) > MaxSecret {
		return "", host.Errorf(host.ConfigError, "secret %s is empty or longer than %d bytes", quote(name),
			MaxSecret).WithSteps(host.OperatorStep(host.OpSecretSet, name))
	}
	return value, nil
}

// RefusesReflection reports whether the binding of a secret says reflect = "refuse". It does where the policy cannot be
// read.
func (p *Policy) RefusesReflection(name string) bool {
	s, err := p.current()
	if err != nil {
		return true
	}
	for _, f := range s.files() {
		if found, ok := f.secrets[name]; ok {
			return found.refuseReflect
		}
	}
	return false
}

// SecretOrigins returns the origins into whose pages a secret may be typed, in their canonical spelling; none if the
// policy has no such list for it. The error is config_error for a policy that cannot be read.
func (p *Policy) SecretOrigins(name string) ([]string, error) {
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	for _, f := range s.files() {
		if found, ok := f.secrets[name]; ok {
			return slices.Clone(found.origins), nil
		}
	}
	return nil, nil
}

// HeldSecrets returns the values of the secrets of the store, of files and of the environment, by name, that are not
// shorter than [host.MinHeldSecret]. It runs no program, and leaves out what cannot be read.
func (p *Policy) HeldSecrets(ctx context.Context) map[string]string {
	sources, err := p.Secrets()
	if err != nil {
		return nil
	}
	values := map[string]string{}
	for _, s := range sources {
		if strings.HasPrefix(s.From, "cmd:") {
			continue
		}
		value, err := p.fetch(ctx, s.Name, s.From)
		if value = withoutLineBreak(value); err == nil && len(value) >= host.MinHeldSecret && len(value) <= MaxSecret {
			values[s.Name] = value
		}
	}
	return values
}

// withoutLineBreak returns a value without one line break at its end.
func withoutLineBreak(value string) string {
	return strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
}

func (p *Policy) fetch(ctx context.Context, name, from string) (string, error) {
	kind, rest, _ := strings.Cut(from, ":")
	switch kind {
	case "env":
		value, ok := p.env.lookup(rest)
		if !ok {
			return "", fmt.Errorf("the environment variable %s is not set", rest)
		}
		return value, nil
	case "file":
		return readSecret(rest, protect.WritableByAll, "everybody can write to it")
	case "cmd":
		return runForSecret(ctx, rest)
	}
	return Store{p.env.Store}.get(name)
}

// runForSecret returns what a program prints. Its stderr is dropped, because it may contain the secret, too.
func runForSecret(ctx context.Context, command string) (string, error) {
	words, err := splitWords(command)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second // a child of the program may keep the pipe open
	out := &boundedBuffer{}
	cmd.Stdout = out
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not end in time", quote(words[0]))
	case err != nil:
		return "", fmt.Errorf("%s failed: %w", quote(words[0]), err)
	}
	return out.String(), nil
}

// boundedBuffer keeps a little more than the largest secret and drops the rest.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(data []byte) (int, error) {
	if free := MaxSecret + 3 - b.Len(); free > 0 {
		b.Buffer.Write(data[:min(free, len(data))])
	}
	return len(data), nil
}

// readSecret reads a file unless tooOpen reports that others have too many rights to it.
func readSecret(path string, tooOpen func(fs.FileInfo) bool, tooOpenReason string) (string, error) {
	f, info, err := protect.Open(path, MaxSecret+2) // and a line break
	var refused *protect.FileError
	switch {
	case errors.As(err, &refused):
		return "", err
	case err != nil:
		return "", fmt.Errorf("%s: %w", path, host.WithoutPath(err))
	}
	defer f.Close()
	if tooOpen(info) {
		return "", fmt.Errorf("%s: %s", path, tooOpenReason)
	}
	data, err := protect.ReadAll(f, info, MaxSecret+2)
	return string(data), err
}

// SecretSource is the source of a secret, without its value.
type SecretSource struct {
	Name string `json:"name"`
	From string `json:"from"`         // "store", "env:NAME", "file:PATH" or "cmd:PROGRAM"
	At   string `json:"at,omitempty"` // position in the policy, FILE:LINE
	// Origins are those into whose pages it may be typed.
	Origins []string `json:"origins,omitempty"`
}

// Secrets lists the secrets of the store and of the policy, by name.
func (p *Policy) Secrets() ([]SecretSource, error) {
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	found := map[string]SecretSource{}
	if p.env.Store != "" {
		names, err := Store{p.env.Store}.Names()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found[name] = SecretSource{Name: name, From: "store"}
		}
	}
	files := s.files()
	slices.Reverse(files) // the one with precedence last
	for _, f := range files {
		for name, src := range f.secrets {
			from := src.from
			if command, ok := strings.CutPrefix(from, "cmd:"); ok {
				words, _ := splitWords(command) // its arguments may be secret, too
				from = "cmd:" + words[0]
			}
			found[name] = SecretSource{name, from, src.pos.String(), src.origins}
		}
	}
	list := make([]SecretSource, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[name])
	}
	return list, nil
}

// Store keeps secrets in files of mode 0600 in a folder of mode 0700.
type Store struct{ Dir string }

// The prefix avoids names such as CON, which Windows reserves in every folder.
const storePrefix = "secret-"

// Set stores a value under a name, and replaces an older one.
func (s Store) Set(name, value string) error {
	if !isName(name) {
		return host.Errorf(host.InvalidArgs, "%s is not a valid name for a secret: expected letters, digits and underscores",
			quote(name))
	}
	if value == "" || len(value) > MaxSecret {
		return host.Errorf(host.InvalidArgs, "a secret has 1 to %d bytes; this one has %d", MaxSecret, len(value))
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
		err = writeFile(filepath.Join(s.Dir, storePrefix+name), []byte(value))
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
		if name, ok := strings.CutPrefix(e.Name(), storePrefix); ok && isName(name) {
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
			quote(name)).WithSteps(host.OperatorStep(host.OpSecretList))
	}
	if err := os.Remove(filepath.Join(s.Dir, storePrefix+name)); err != nil {
		return host.Errorf(host.ConfigError, "secret %s cannot be removed: %v", name, host.WithoutPath(err))
	}
	return nil
}

func (s Store) get(name string) (string, error) {
	if s.Dir == "" || !isName(name) {
		return "", errors.New("there is no secret store")
	}
	for _, dir := range []string{filepath.Dir(s.Dir), s.Dir} {
		if err := protect.CheckFolder(dir); err != nil {
			return "", err
		}
	}
	shared := func(info fs.FileInfo) bool { return !protect.OwnerOnly(info) }
	value, err := readSecret(filepath.Join(s.Dir, storePrefix+name), shared,
		"others may read it: chmod 600 it and change the secret")
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("no secret of that name is stored")
	}
	return value, err
}
