package policy

import (
	"fmt"
	"strings"

	"github.com/parley-tools/parley/host"
)

// Signer is who signed a build of a plugin, as far as that was verified.
type Signer struct {
	Key     string // public key; "" if there is no signature that fits
	Trusted bool   // the operator's list of keys has it
	Shipped bool   // the build is a part of this program, which needs no signature beside it
}

func (e Env) signer(plugin, digest string) (Signer, error) {
	if e.Signer == nil {
		return Signer{}, nil
	}
	return e.Signer(plugin, digest)
}

// approve tells whether the operator lets a build of a plugin run at all. The error is integrity where policy.toml binds the
// plugin to another digest or signer, or demands a trusted signature and there is none. A signer that policy.toml names for a
// plugin is trusted for that plugin. What is compiled in ("" for a digest) is never refused.
func (s *state) approve(plugin, digest string, env Env) error {
	if digest == "" {
		return nil
	}
	pin := s.entry(plugin).hand
	if pin != nil && pin.digest != "" && pin.digest != digest {
		return host.Errorf(host.Integrity, "%s:%d approves %s as %s, and this build is %s", pin.at.file, pin.bindAt.line, plugin, pin.digest, digest).
			WithNext("install the approved build again, or change that line after looking at parley plugin show " + plugin)
	}
	demand := s.requireSigner()
	if demand == nil && (pin == nil || pin.signer == "") {
		return nil
	}
	by, err := env.signer(plugin, digest)
	switch {
	case err != nil:
		return err
	case pin != nil && pin.signer != "":
		if by.Key == pin.signer {
			return nil
		}
		return host.Errorf(host.Integrity, "%s:%d wants %s signed with the key %s, and %s", pin.at.file, pin.signAt.line, plugin, pin.signer, by.said()).
			WithNext("install a build that is signed with that key, or change that line after parley plugin verify " + plugin)
	case by.Trusted || by.Shipped:
		return nil
	}
	refused := host.Errorf(host.Integrity, "%s:%d wants every plugin signed with a trusted key, and %s: %s", demand.file, demand.line, plugin, by.said())
	if by.Key != "" {
		refused.Next = append(refused.Next, "parley plugin trust "+shellQuote(by.Key))
	}
	return refused.WithNext("parley plugin verify " + plugin)
}

// said says who signed a build.
func (s Signer) said() string {
	switch {
	case s.Key == "":
		return "this build has no signature that fits"
	case !s.Trusted:
		return "this build is signed with the key " + s.Key + ", which is not trusted"
	}
	return "this build is signed with the key " + s.Key
}

// Signer is the public key that policy.toml binds a plugin to, or "".
func (p *Policy) Signer(plugin string) (string, error) {
	s, err := p.current()
	if err != nil {
		return "", err
	}
	if pin := s.entry(plugin).hand; pin != nil {
		return pin.signer, nil
	}
	return "", nil
}

// requireSigner is where a trusted signature is demanded of every plugin; nil if it is not.
func (s *state) requireSigner() *place {
	for _, f := range s.files() {
		if f.requireSigner != nil {
			if *f.requireSigner {
				return &f.requireAt
			}
			return nil
		}
	}
	return nil
}

// unsigned says why a part that is bound to a signer is not about a build; "" if it is. A key that policy.toml names needs no
// other trust.
func (e entry) unsigned(b *plugin, digest string, env Env) string {
	if b.signer == "" {
		return ""
	}
	by, err := env.signer(b.name, digest)
	switch {
	case err != nil:
		return fmt.Sprintf("granted to a signer that cannot be told (%s): %v", b.signAt, err)
	case by.Key != b.signer:
		return fmt.Sprintf("granted to another signer (%s)", b.signAt)
	case !by.Trusted && b != e.hand && (e.hand == nil || e.hand.signer != by.Key):
		return fmt.Sprintf("granted to a signer that is not trusted (%s)", b.signAt)
	}
	return ""
}

// admits tells whether grants to a digest or signer would hold beside what the part itself is bound to.
func (b *plugin) admits(to string, env Env) bool {
	switch {
	case b.digest != "" && b.digest != to:
		return false
	case b.signer == "" || b.signer == to:
		return true
	}
	return isDigest(to) && (entry{hand: b}).unsigned(b, to, env) == ""
}

// refuse ends a call of a build that the operator did not approve; it shows how its manifest differs from the approved one's.
func (s *state) refuse(err error, plugin, digest string, env Env) error {
	refused := host.AsError(err)
	if refused.Code != host.Integrity {
		return err
	}
	refused.Message += "; nothing was run"
	if pin := s.entry(plugin).hand; pin != nil && pin.digest != "" && pin.digest != digest && env.Difference != nil {
		refused.Message += strings.TrimRight("\n"+env.Difference(plugin, pin.digest, digest), "\n")
	}
	return refused
}

// Outlived prepares a change that takes away what grants.toml gives to another build of a plugin than the one with this
// digest; with "" the plugin is gone. There is nothing to change (false) where nothing is given, or to this build or its
// signer. Notes say what policy.toml gives, which only the operator can take away.
func (p *Policy) Outlived(plugin, digest string) (Edit, bool, error) {
	s, err := p.current()
	if err != nil {
		return Edit{}, false, err
	}
	e := s.entry(plugin)
	if e.made != nil && len(e.made.grants) > 0 && (entry{made: e.made}).unbound(e.made, digest, p.env) != "" {
		edit, err := p.Revoke(plugin)
		return edit, err == nil, err
	}
	var edit Edit
	if e.hand != nil && len(e.hand.grants) > 0 {
		edit.Notes = []string{fmt.Sprintf("%s:%d sets the grants of %s by hand, and those stay", e.hand.at.file, e.hand.grantsAt.line, plugin)}
	}
	return edit, false, nil
}
