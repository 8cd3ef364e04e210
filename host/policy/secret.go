package policy

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy/secret"
	"github.com/parley-tools/parley/host/step"
)

// Secret returns the value of a secret, from the source in [secrets.NAME] or else from the store, without one line
// break at its end. For a login it returns an access token that is valid now. It does not check who may have the
// value: grants do. The error is config_error, with the cause io/fs.ErrNotExist if nothing is stored, or the error of
// [Env.Token]. It never contains any part of the value.
func (p *Policy) Secret(ctx context.Context, name string) (string, error) {
	s, err := p.current()
	if err != nil {
		return "", err
	}
	src, ok := s.secret(name)
	if !ok {
		src.from = "store"
	}
	value, err := p.fetch(ctx, name, src.from)
	if err != nil {
		at := ""
		if src.pos.file != "" {
			at = " (" + src.pos.String() + ")"
		}
		e := host.Errorf(host.ConfigError, "secret %s has no value: %v%s", quote(name), host.WithoutPath(err),
			at).WithSteps(step.Operator(step.OpSecretSet, name))
		if errors.Is(err, secret.ErrNone) {
			e.Cause = fs.ErrNotExist
		}
		return "", e
	}
	if src.from == "store" && secret.ParseLogin(value) != nil {
		return p.env.Token(ctx, name)
	}
	if value = withoutLineBreak(value); value == "" || len(value) > secret.Max {
		return "", host.Errorf(host.ConfigError, "secret %s is empty or longer than %d bytes", quote(name),
			secret.Max).WithSteps(step.Operator(step.OpSecretSet, name))
	}
	return value, nil
}

// RefusesReflection reports whether the binding of a secret says reflect = "refuse". It returns true if the policy
// cannot be read.
func (p *Policy) RefusesReflection(name string) bool {
	refuses, err := ask(p, func(s *state) bool {
		src, _ := s.secret(name)
		return src.refuseReflect
	})
	return refuses || err != nil
}

// SecretOrigins returns the origins into whose pages a secret may be typed, in their canonical spelling; none if the
// policy has no such list for it. The error is config_error for a policy that cannot be read.
func (p *Policy) SecretOrigins(name string) ([]string, error) {
	return ask(p, func(s *state) []string {
		src, _ := s.secret(name)
		return slices.Clone(src.origins)
	})
}

// OriginTLS returns what [origins] says about the certificate of an https origin: "any", "pin:sha256/HASH", or "" to
// leave it to the browser.
func (p *Policy) OriginTLS(of string) (string, error) {
	return ask(p, func(s *state) string { return s.origin(of).tls })
}

// NamesTLS reports whether [origins] says something about the certificate of any origin.
func (p *Policy) NamesTLS() bool {
	names, err := ask(p, func(s *state) bool {
		return slices.ContainsFunc(s.files(), func(f *file) bool {
			return slices.ContainsFunc(slices.Collect(maps.Values(f.origins)), func(r originRule) bool { return r.tls != "" })
		})
	})
	return names && err == nil
}

// NamesOrigin reports whether [origins] names an origin.
func (p *Policy) NamesOrigin(of string) bool {
	names, err := ask(p, func(s *state) bool { return s.origin(of) != originRule{} })
	return names && err == nil
}

// OriginLogin returns USER:PASSWORD for a server that asks for a login, "" if [origins] has none for its origin.
func (p *Policy) OriginLogin(ctx context.Context, of string) (string, error) {
	name, err := ask(p, func(s *state) string { return s.origin(of).login })
	if err != nil || name == "" {
		return "", err
	}
	return p.Secret(ctx, name)
}

// HeldSecrets returns the values of the secrets of the store, of files and of the environment, by name, that are not
// shorter than [host.MinHeldSecret]. For a login it returns all tokens as they are. It runs no program, sends nothing,
// and leaves out what cannot be read.
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
		if l := secret.ParseLogin(value); err == nil && l != nil {
			maps.Copy(values, l.Values(s.Name))
		} else if err == nil {
			values[s.Name] = withoutLineBreak(value)
		}
	}
	maps.DeleteFunc(values, func(_, v string) bool { return len(v) < host.MinHeldSecret || len(v) > secret.Max })
	return values
}

// withoutLineBreak returns a value without one line break at its end.
func withoutLineBreak(value string) string {
	return strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
}

// SecretSource is the source of a secret, without its value.
type SecretSource struct {
	Name string `json:"name"`
	From string `json:"from"`         // "store", "env:NAME", "file:PATH" or "cmd:PROGRAM"; a command also has "login"
	At   string `json:"at,omitempty"` // position in the policy, FILE:LINE
	// Origins are the origins into whose pages it may be typed.
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
		names, err := secret.Store{Dir: p.env.Store}.Names()
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
				words, _ := secret.Words(command) // its arguments may be secret, too
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

func (p *Policy) fetch(ctx context.Context, name, from string) (string, error) {
	return secret.Fetch(ctx, name, from, p.env.LookupEnv, secret.Store{Dir: p.env.Store})
}
