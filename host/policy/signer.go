package policy

import (
	"fmt"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/step"
)

// Signer is the verified signer of a build of a plugin.
type Signer struct {
	Key     string // public key; "" without a valid signature
	Trusted bool   // the key is in the operator's list
	Shipped bool   // the build is part of this program, and needs no signature
}

// approve returns an error if the operator does not let a build of a plugin run. The error is integrity if policy.toml
// binds the plugin to another digest or signer, or requires a trusted signature and there is none. A signer that
// policy.toml names for a plugin is trusted for that plugin. Built-in plugins (digest "") are always approved.
func (s *state) approve(plugin, digest string, env Env) error {
	if digest == "" {
		return nil
	}
	pin := s.entry(plugin).manual
	if pin != nil && pin.digest != "" && pin.digest != digest {
		return host.Errorf(host.Integrity,
			"%s approves %s as %s, and this build is %s: install the approved build, or change that line",
			pin.boundPos.location(), plugin, pin.digest, digest).
			WithSteps(step.Operator(step.OpPluginShow, plugin))
	}
	demand := s.requireSigner()
	if demand == nil && (pin == nil || pin.signer == "") {
		return nil
	}
	by, err := env.Signer(plugin, digest)
	switch {
	case err != nil:
		return err
	case pin != nil && pin.signer != "":
		if by.Key == pin.signer {
			return nil
		}
		return host.Errorf(host.Integrity, "%s requires %s to be signed with the key %s, and %s",
			pin.signerPos.location(), plugin, pin.signer, by.describe()).
			WithSteps(step.Operator(step.OpPluginVerify, plugin))
	case by.Trusted || by.Shipped:
		return nil
	}
	refused := host.Errorf(host.Integrity, "%s requires every plugin to be signed with a trusted key, and %s is "+
		"not: %s", demand.location(), plugin, by.describe())
	if by.Key != "" {
		refused.WithSteps(step.Operator(step.OpPluginTrust, by.Key))
	}
	return refused.WithSteps(step.Operator(step.OpPluginVerify, plugin))
}

// describe returns who signed a build, as a text.
func (s Signer) describe() string {
	switch {
	case s.Key == "":
		return "this build has no valid signature"
	case !s.Trusted:
		return "this build is signed with the key " + s.Key + ", which is not trusted"
	}
	return "this build is signed with the key " + s.Key
}

// Signer returns the public key to which policy.toml binds a plugin, or "".
func (p *Policy) Signer(plugin string) (string, error) {
	return ask(p, func(s *state) string {
		if pin := s.entry(plugin).manual; pin != nil {
			return pin.signer
		}
		return ""
	})
}

// requireSigner returns the position that requires a trusted signature of every plugin, or nil.
func (s *state) requireSigner() *position {
	f := first(s.files(), func(f *file) (*file, bool) { return f, f.requireSigner != nil })
	if f == nil || !*f.requireSigner {
		return nil
	}
	return &f.requireSignerPos
}

// signerMismatch returns why a part that is bound to a signer does not apply to a build; "" if it does. A key that
// policy.toml names needs no other trust.
func (e entry) signerMismatch(bound *plugin, digest string, env Env) string {
	if bound.signer == "" {
		return ""
	}
	by, err := env.Signer(bound.name, digest)
	switch {
	case err != nil:
		return fmt.Sprintf("granted to a signer that cannot be verified (%s): %v", bound.signerPos, err)
	case by.Key != bound.signer:
		return fmt.Sprintf("granted to another signer (%s)", bound.signerPos)
	case !by.Trusted && bound != e.manual && (e.manual == nil || e.manual.signer != by.Key):
		return fmt.Sprintf("granted to a signer that is not trusted (%s)", bound.signerPos)
	}
	return ""
}

// acceptsGrantsTo reports whether grants to a digest or signer would apply, given what the part itself is bound to.
func (pin *plugin) acceptsGrantsTo(to string, env Env) bool {
	switch {
	case pin.digest != "" && pin.digest != to:
		return false
	case pin.signer == "" || pin.signer == to:
		return true
	}
	return isDigest(to) && (entry{manual: pin}).signerMismatch(pin, to, env) == ""
}

// describeRefusal completes the error about a build that is not approved: it says how its manifest differs from the
// approved one.
func (s *state) describeRefusal(err error, plugin, digest string, env Env) error {
	refused := host.AsError(err)
	if refused.Code != host.Integrity {
		return err
	}
	refused.Message += "; nothing was run"
	if pin := s.entry(plugin).manual; pin != nil && pin.digest != "" && pin.digest != digest && env.Difference != nil {
		refused.Message += strings.TrimRight("\n"+env.Difference(plugin, pin.digest, digest), "\n")
	}
	return refused
}

// grantsRemain notes that the grants of policy.toml are not changed here.
func (p *plugin) grantsRemain(name string) string {
	return fmt.Sprintf("%s sets the grants of %s by hand, and those remain", p.grantsPos.location(), name)
}

// RevokeStale prepares a change that removes the grants of grants.toml for other builds of a plugin than the one with
// this digest; "" means that the plugin was removed. It returns false if there is nothing to change. Notes say what
// policy.toml grants, which only the operator can remove.
func (p *Policy) RevokeStale(plugin, digest string) (Edit, bool, error) {
	s, err := p.current()
	if err != nil {
		return Edit{}, false, err
	}
	e := s.entry(plugin)
	if e.generated != nil && len(e.generated.grants) > 0 && (entry{generated: e.generated}).unboundReason(e.generated,
		digest, p.env) != "" {
		edit, err := p.Revoke(plugin)
		return edit, err == nil, err
	}
	var edit Edit
	if e.manual != nil && len(e.manual.grants) > 0 {
		edit.Notes = []string{e.manual.grantsRemain(plugin)}
	}
	return edit, false, nil
}
