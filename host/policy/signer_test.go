package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/caller"
	"github.com/parley-tools/parley/manifest"
)

// signedBy returns an Env with the given signers of builds.
func signedBy(signers map[string]Signer) Env {
	return Env{Signer: func(_, digest string) (Signer, error) { return signers[digest], nil }}
}

// TestSigner checks signatures that the policy requires, of one plugin and of all.
func TestSigner(t *testing.T) {
	pinned := "[plugin.p]\nsigner = \"RWQkey\"\ngrants = [\"clock\"]\n"
	required := "[operator]\nrequire_signer = true\n"
	for _, c := range []struct {
		name, hand, made string
		by               Signer
		want             string // in the error; "" if it runs
		clock            bool
	}{
		{"pinned and signed", pinned, "", Signer{Key: "RWQkey"}, "", true},
		{"pinned, signed and trusted", pinned, "", Signer{Key: "RWQkey", Trusted: true}, "", true},
		{"pinned, another signer", pinned, "", Signer{Key: "RWQother", Trusted: true},
			"policy.toml:2 requires p to be signed with " +
				"the key RWQkey, and this build is signed with the key RWQother; nothing was run", false},
		{"pinned, unsigned", pinned, "", Signer{},
			"policy.toml:2 requires p to be signed with the key RWQkey, and this build has no valid signature", false},
		{"pinned, shipped", pinned, "", Signer{Shipped: true}, "this build has no valid signature", false},
		{"required, trusted", required, "", Signer{Key: "RWQkey", Trusted: true}, "", false},
		{"required, not trusted", required, "", Signer{Key: "RWQkey"},
			"policy.toml:2 requires every plugin to be signed with a " +
				"trusted key, and p is not: this build is signed with the key RWQkey, which is not trusted", false},
		{"required, unsigned", required, "", Signer{}, "policy.toml:2 requires every plugin to be signed", false},
		{"required, shipped", required, "", Signer{Shipped: true}, "", false},
		{"required, and pinned by hand", required + pinned, "", Signer{Key: "RWQkey"}, "", true},
		{"not required", "[operator]\nrequire_signer = false\n", required, Signer{}, "", false},
		{"required by the other file", "", required, Signer{}, "grants.toml:2 requires every plugin to be signed", false},
		{"granted to a signer", "", pinned, Signer{Key: "RWQkey", Trusted: true}, "", true},
		{"granted to a signer that is not trusted", "", pinned, Signer{Key: "RWQkey"}, "", false},
		{"granted to a signer that is trusted for this", "[plugin.p]\nsigner = \"RWQkey\"\n", pinned, Signer{Key: "RWQkey"},
			"", true},
		{"granted to another signer", "", pinned, Signer{Key: "RWQother", Trusted: true}, "", false},
		{"a digest and a signer, both right", "[plugin.p]\ndigest = \"" + digestA + "\"\nsigner = \"RWQkey\"\n", "",
			Signer{Key: "RWQkey"}, "", false},
		{"a digest and a signer, the digest wrong", "[plugin.p]\ndigest = \"" + digestB + "\"\nsigner = \"RWQkey\"\n", "",
			Signer{Key: "RWQkey"}, "policy.toml:2 approves p as " + digestB, false},
		{"a digest and a signer, the signer wrong", "[plugin.p]\ndigest = \"" + digestA + "\"\nsigner = \"RWQkey\"\n", "",
			Signer{}, "policy.toml:3 requires p to be signed", false},
	} {
		p, err := Load(folderOf(t, c.hand, c.made), signedBy(map[string]Signer{digestA: c.by}))
		must(t, err)
		d, err := p.Decide(context.Background(), host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "p", Tool: "t",
			Digest:       digestA,
			Capabilities: manifest.Capabilities{Clock: &manifest.PlainCapability{Optional: true}}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (err == nil) != (c.want == "") || !strings.Contains(got, c.want) || err != nil &&
			host.AsError(err).Code != host.Integrity {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if d.Grant.Clock != c.clock {
			t.Errorf("%s: clock %v", c.name, d.Grant.Clock)
		}
		if _, err := p.Decide(context.Background(), host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "p",
			Tool: "t"}); err != nil {
			t.Errorf("%s: a built-in plugin: %v", c.name, err)
		}
	}
}

// Without Env.Signer no build counts as signed. If it fails, nothing runs.
func TestSignerUnknown(t *testing.T) {
	ask := host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "p", Tool: "t", Digest: digestA}
	dir := folderOf(t, "[operator]\nrequire_signer = true\n", "")
	p, err := Load(dir, Env{})
	must(t, err)
	if _, err := p.Decide(context.Background(), ask); host.AsError(err).Code != host.Integrity {
		t.Errorf("without Env.Signer: %v", err)
	}
	broken := host.Errorf(host.ConfigError, "the list is broken")
	p, err = Load(dir, Env{Signer: func(string, string) (Signer, error) { return Signer{}, broken }})
	must(t, err)
	if _, err := p.Decide(context.Background(), ask); !errors.Is(err, broken) || err.Error() != "the list is broken" {
		t.Errorf("Env.Signer fails: %v", err)
	}
}

// The error for a build that is not approved contains the difference of the manifests.
func TestDifference(t *testing.T) {
	env := Env{Difference: func(plugin, approved, found string) string { return "- " + approved + "\n+ " + found + "\n" }}
	p, err := Load(folderOf(t, "[plugin.p]\ndigest = \""+digestB+"\"\n", ""), env)
	must(t, err)
	_, err = p.Decide(context.Background(), host.Ask{Principal: caller.Principal{Name: "cli"}, Plugin: "p", Tool: "t",
		Digest: digestA})
	if want := "; nothing was run\n- " + digestB + "\n+ " + digestA; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want it to end in %q", err, want)
	}
	if x := p.Explain(host.Info{Name: "p", Digest: digestA}, nil, ""); len(x.Notes) != 1 || !strings.HasPrefix(x.Notes[0],
		"it does not run: ") || strings.Contains(x.Notes[0], "\n") {
		t.Errorf("explained before anything runs: %q", x.Notes)
	}
}

// If policy.toml names a signer, only builds signed by it can be granted rights.
func TestGrantToASignedBuild(t *testing.T) {
	p, err := Load(folderOf(t, "[plugin.p]\nsigner = \"RWQkey\"\n", ""),
		signedBy(map[string]Signer{digestA: {Key: "RWQkey"}}))
	must(t, err)
	if _, err := p.Grant("p", digestA, grants(t, "clock")...); err != nil {
		t.Error(err)
	}
	if _, err := p.Grant("p", "RWQkey", grants(t, "clock")...); err != nil {
		t.Error(err)
	}
	for _, to := range []string{digestB, "RWQother"} {
		if _, err := p.Grant("p", to, grants(t, "clock")...); host.AsError(err).Code != host.ConfigError {
			t.Errorf("to %s: %v", to, err)
		}
	}
}

// Grants for another build are revoked; those for this one or its signer remain.
func TestRevokeStale(t *testing.T) {
	toA := "[plugin.p]\ndigest = \"" + digestA + "\"\ngrants = [\"clock\", \"random\"]\n"
	toKey := "[plugin.p]\nsigner = \"RWQkey\"\ngrants = [\"clock\"]\n"
	for _, c := range []struct {
		name, hand, made, digest string
		gone                     []string
	}{
		{"another build", "", toA, digestB, []string{"clock", "random"}},
		{"the same build", "", toA, digestA, nil},
		{"the same signer", "", toKey, digestB, nil},
		{"another signer", "", toKey, digestA, []string{"clock"}},
		{"by hand", toA, "", digestB, nil},
		{"the plugin is gone", "", toA, "", []string{"clock", "random"}},
		{"the plugin is gone, signed", "", toKey, "", []string{"clock"}},
		{"nothing", "", "", digestB, nil},
		{"limits alone", "", "[plugin.p]\ndigest = \"" + digestA + "\"\nisolate = \"none\"\n", digestB, nil},
	} {
		p, err := Load(folderOf(t, c.hand, c.made), signedBy(map[string]Signer{digestB: {Key: "RWQkey", Trusted: true}}))
		must(t, err)
		edit, some, err := p.RevokeStale("P", c.digest)
		if err != nil || some != (c.gone != nil) || !slices.Equal(edit.Removed, c.gone) {
			t.Errorf("%s: %v, %v, %v", c.name, edit.Removed, some, err)
		}
		if said := strings.Join(edit.Notes, ""); (c.hand != "") != strings.Contains(said,
			"policy.toml:3 sets the grants of P by hand, and those remain") {
			t.Errorf("%s: notes %q", c.name, edit.Notes)
		}
	}
}
