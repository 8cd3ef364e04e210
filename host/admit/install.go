package admit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
	"github.com/parley-tools/parley/manifest/spelling"
)

// Options say how a plugin is installed.
type Options struct {
	// Signature is the file of the signature. "" means FILE.minisig beside the plugin, if there is one.
	Signature string
	// Origin is where the file was fetched from, with its digest, for the lock file and messages; SignatureText is the
	// signature that was fetched with it. "" and nil mean that it is a file of the operator.
	Origin        string
	SignatureText []byte
	// Digest, if not "", is the only digest that the plugin may have.
	Digest string
	// Downgrade lets an older version take the place of a newer one.
	Downgrade bool
	// Accept are rules of manifest/RULES.md that the plugin may break although they refuse a plugin.
	Accept []string
	// Replace lists names that the plugin may take from another owner, after a person has confirmed it.
	Replace []string
}

// Installation is a plugin that has been read, verified and compiled, and can be installed.
type Installation struct {
	Candidate *store.Candidate
	Signer    Signer
	Report    *Report
	Replaces  *store.Entry // the installed build of its name; nil if there is none
	// Changes are how the plugin differs from the build that it replaces.
	Changes []lint.Change
	// TakesFrom is the owner from whom it takes the name: "shipped" or the key of a signer; "" if the name is free or its
	// own. A person has to confirm that before [Installation.Commit].
	TakesFrom string
	// Older is why this older version may not replace a newer one; nil if it is not older, or may replace it. A person
	// can confirm it.
	Older *host.Error

	by        *Installer
	options   Options
	confirmed bool
}

// Report returns the report on a plugin in a file or a folder. Nothing is installed. The error is invalid_plugin for a
// plugin that an installation would refuse.
func (in *Installer) Report(ctx context.Context, path string, accept []string) (*Report, error) {
	c, signer, err := in.readOffered(path, Options{})
	if err != nil {
		return nil, err
	}
	report, err := in.Admit(ctx, c, signer, accept)
	if err != nil {
		return nil, err
	}
	return report, in.refuse(report, step.Operator(step.OpHelp, "plugin install"))
}

// ReportInstalled returns the report on an installed plugin. Its examples run again.
func (in *Installer) ReportInstalled(ctx context.Context, e store.Entry) (*Report, error) {
	c, err := in.cfg.Store.Open(e)
	if err != nil {
		return nil, err
	}
	signer, err := in.SignerOf(e)
	if err != nil {
		return nil, err
	}
	return in.Admit(ctx, c, signer, nil)
}

// BreakingChanges returns the changes that a person must confirm. If the version does not announce breaking changes by
// a higher first number, these are changes that break callers or ask for more rights. If it does, they are tools that
// are removed but still in use. An older version is treated as a newer one.
func (i *Installation) BreakingChanges() []lint.Change {
	if i.Replaces == nil {
		return nil
	}
	isMajor := lint.IsMajor(i.Replaces.Version, i.Candidate.Manifest.Version)
	return lists.Filter(lint.Breaking(i.Changes), func(c lint.Change) bool {
		return !isMajor || c.Uses != "" && i.Candidate.Manifest.Tool(c.Tool) == nil
	})
}

// WhyConfirm returns why the breaking changes between two versions have to be confirmed.
func WhyConfirm(before, after string) string {
	switch {
	case lint.IsMajor(before, after):
		return "removes what is in use"
	case manifest.Newer(before, after):
		return "is an older version"
	}
	return "is not a higher major version"
}

// Confirm states that a person has confirmed the changes of [Installation.BreakingChanges], and Older.
func (i *Installation) Confirm() { i.confirmed = true }

// Installed says what an installation or a removal has changed.
type Installed struct {
	store.Entry
	Granted, Revoked []string // rights, in the grammar of grants
}

// BindScript binds an installed plugin of kind script to the present build of its engine, after that has loaded the
// script's text. The plugin's texts and rights were approved when it was installed, and stay.
func (in *Installer) BindScript(ctx context.Context, e store.Entry) error {
	c, err := in.cfg.Store.Open(e)
	if err != nil {
		return err
	}
	script := in.cfg.Engine().Provider(c.Source())
	if c.Engine, err = script.EngineDigest(); err != nil {
		return err
	}
	if err := script.CheckScript(ctx); err != nil {
		return err
	}
	c.Path = e.Source
	if _, _, err := in.cfg.Store.Install(c, false); err != nil {
		return err
	}
	in.note("install", e.Name, e.Version, e.Digest, "from "+e.Source, "on engine "+c.Engine)
	return nil
}

// readOffered reads a plugin and its signature. The error is integrity for an invalid signature.
func (in *Installer) readOffered(path string, o Options) (*store.Candidate, Signer, error) {
	c, err := store.ReadCandidate(path, in.cfg.Version)
	if err != nil {
		return nil, Signer{}, err
	}
	if o.Origin != "" {
		path, c.Path, c.Signature = o.Origin, o.Origin, o.SignatureText
	}
	if o.Signature != "" {
		if c.Signature, err = store.ReadSignature(o.Signature); err != nil {
			return nil, Signer{}, err
		}
	}
	signer, err := in.Verify(c)
	if err != nil {
		e := host.AsError(err)
		e.Message += "; nothing was installed"
		if o.Origin != "" {
			return nil, Signer{}, e.WithSteps(step.Operator(step.OpPluginPull, path))
		}
		return nil, Signer{}, e.WithSteps(step.Operator(step.OpPluginVerify, path))
	}
	c.Signer = signer.Key
	return c, signer, nil
}

// Prepare reads, verifies, compiles and admits a plugin. Nothing is installed yet. The error is invalid_plugin
// for a plugin that its admission refuses.
func (in *Installer) Prepare(ctx context.Context, path string, o Options) (*Installation, error) {
	c, signer, err := in.readOffered(path, o)
	if err != nil {
		return nil, err
	}
	if o.Digest != "" && c.Digest != o.Digest {
		return nil, host.Errorf(host.Integrity, "%s has %s %s with the digest %s, not with the pinned %s; nothing was "+
			"installed", manifest.CleanLine(c.Path), c.Manifest.Name, manifest.CleanLine(c.Manifest.Version), c.Digest, o.Digest)
	}
	takesFrom, err := in.ownName(c, o.Replace)
	if err != nil {
		return nil, err
	}
	before, err := in.cfg.Store.Replaces(c, true)
	if err != nil {
		return nil, err
	}
	if before != nil && before.Digest == c.Digest && c.Signature == nil { // the installed signature stays
		if signer, err = in.SignerOf(*before); err != nil {
			return nil, err
		}
	}
	// What cannot be compiled within its limits is refused now, and the first call is fast.
	report, err := in.Admit(ctx, c, signer, o.Accept)
	if err != nil {
		return nil, err
	}
	if err := in.refuse(report, step.Operator(step.OpHelp, "plugin install")); err != nil {
		e := host.AsError(err)
		e.Message += ". Nothing was installed"
		return nil, e
	}
	if c.Engine, err = in.cfg.Engine().Provider(c.Source()).EngineDigest(); err != nil {
		return nil, err
	}
	in.signers.builds.Store(c.Digest, c)
	i := &Installation{Candidate: c, Signer: signer, Report: report, Replaces: before,
		TakesFrom: takesFrom, by: in, options: o}
	if before != nil && before.Digest != c.Digest {
		if old, ok := in.cfg.Store.Approved(before.Digest); ok {
			if m, err := manifest.Load(old); err == nil {
				i.Changes = in.Compare(m, c.Manifest)
			}
		}
	}
	if _, err = in.cfg.Store.Replaces(c, o.Downgrade); errors.Is(err, host.Integrity) {
		i.Older, err = host.AsError(err), nil
	}
	return i, err
}

// ownName decides whether a plugin may have its name, and sets who owns it. It returns the owner who loses the name, ""
// if none does. The error is already_exists if replace does not contain the name.
func (in *Installer) ownName(c *store.Candidate, replace []string) (takesFrom string, err error) {
	shipped, err := in.ownShipped(c)
	if err != nil {
		return "", err
	}
	name, owner := c.Manifest.Name, ""
	if shipped {
		owner = host.OwnerShipped
	}
	info := c.Source().Info
	entry, err := in.cfg.Store.Find(name)
	switch {
	case err == nil && entry.Digest == c.Digest:
		return "", nil // the very build that has the name
	case err == nil:
		owner = entry.Info().Owner
	case !errors.Is(err, host.NotFound):
		return "", err
	case owner == host.OwnerShipped && info.Owner != host.OwnerShipped:
		c.ReplacedOwner = host.OwnerShipped
	}
	if owner == "" || owner == host.OwnerUnsigned || owner == info.Owner {
		return "", nil
	}
	if !slices.ContainsFunc(replace, func(r string) bool { return strings.EqualFold(r, name) }) {
		return "", store.NameTaken(c, owner)
	}
	c.TakesName = true
	return owner, nil
}

// ownShipped reports whether a shipped plugin has the name of a candidate, and sets the candidate's owner if it is that
// plugin.
func (in *Installer) ownShipped(c *store.Candidate) (bool, error) {
	digest, err := in.cfg.Shipped(c.Manifest.Name)
	if err != nil || digest == "" {
		return false, err
	}
	if sum := sha256.Sum256(c.Wasm); digest == "sha256:"+hex.EncodeToString(sum[:]) && c.ManifestEmbedded() {
		c.Owner = host.OwnerShipped
	}
	return true, nil
}

// isShipped reports whether a build is the shipped plugin of its name.
func (in *Installer) isShipped(plugin, digest string) bool {
	shipped, err := in.cfg.Shipped(plugin)
	return err == nil && shipped != "" && shipped == digest
}

// ownLoaded decides whether a plugin that is loaded from a file may have its name.
func (in *Installer) ownLoaded(c *store.Candidate, replace func(plugin, owner string) error) error {
	name := c.Manifest.Name
	before, err := in.cfg.Store.Find(name)
	installed := err == nil
	takesFrom, err := in.ownName(c, []string{name})
	if err != nil {
		return err
	}
	if takesFrom != "" {
		if replace == nil {
			return store.NameTaken(c, takesFrom)
		}
		if err := replace(name, takesFrom); err != nil {
			return err
		}
	}
	if identity := before.Info().Identity(); installed && identity != c.Source().Info.Identity() {
		c.ReplacedOwner = identity
	}
	return nil
}

// Commit installs the plugin and writes the grants that edit prepared. Without an edit the plugin is granted nothing,
// and what was granted to another build of its name is revoked.
func (i *Installation) Commit(edit policy.Edit) (Installed, error) {
	if breaks := i.BreakingChanges(); len(breaks) > 0 && !i.confirmed {
		before, after := manifest.CleanLine(i.Replaces.Version), manifest.CleanLine(i.Candidate.Manifest.Version)
		return Installed{}, host.Errorf(host.Denied, "%s %s breaks callers of %s and %s; nobody confirmed that, so nothing "+
			"was installed:\n  %s", i.Candidate.Manifest.Name, after, before, WhyConfirm(before, after), listChanges(breaks))
	}
	rules, err := i.by.cfg.Rules()
	if err != nil {
		return Installed{}, err
	}
	downgrade := i.options.Downgrade || i.confirmed && (i.Older != nil || len(i.BreakingChanges()) > 0)
	entry, _, err := i.by.cfg.Store.Install(i.Candidate, downgrade)
	if err != nil {
		return Installed{}, err
	}
	if before := i.Replaces; before != nil && before.Digest != entry.Digest {
		i.by.cfg.Engine().Forget(before.Digest)
	}
	accepted := lists.Map(i.Report.Accepted, func(rule string) string { return "accepted " + rule })
	details := append([]string{entry.Version, entry.Digest, "from " + entry.Source}, accepted...)
	i.by.note("install", entry.Name, details...)
	i.Report.Owner = entry.Info().Owner // installed again, a build keeps the owner that it has
	done := Installed{Entry: entry}
	if edit.Path == "" {
		var some bool
		if edit, some, err = rules.RevokeStale(entry.Name, entry.Digest); err != nil || !some {
			return done, err
		}
	}
	if err := i.by.WriteGrants(edit); err != nil {
		e := host.AsError(err)
		e.Message = entry.Name + " is installed, but its grants are not written: " + e.Message
		return done, e
	}
	done.Granted, done.Revoked = edit.Added, edit.Removed
	return done, nil
}

// listChanges writes changes one a line.
func listChanges(changes []lint.Change) string {
	const most = 12
	return strings.Join(spelling.AtMost(lists.Map(changes, lint.Change.String), most), "\n  ")
}

// Remove removes an installed plugin and revokes its grants. The error is not_found for a plugin that is not installed,
// and invalid_args for one that is part of the binary.
func (in *Installer) Remove(name string) (Installed, error) {
	entry, err := in.cfg.Store.Find(name)
	if errors.Is(err, host.NotFound) {
		if all, failed := in.cfg.Providers(); failed == nil {
			if slices.ContainsFunc(all, func(o host.Provider) bool { return strings.EqualFold(o.Info().Name, name) }) {
				text := "%s is part of this binary and cannot be removed; an installed plugin of its name takes its place"
				if manifest.Builtin(name) {
					text = "%s is built in and cannot be removed"
				}
				return Installed{}, host.Errorf(host.InvalidArgs, text, manifest.CleanLine(name)).
					WithSteps(step.Operator(step.OpPluginList))
			}
		}
	}
	if err != nil {
		return Installed{}, err
	}
	uses := in.cfg.Uses(entry.Name)
	for _, tool := range slices.Sorted(maps.Keys(uses)) {
		in.cfg.Notice(entry.Name + "." + tool + " was in use: in the last 7 days " + uses[tool])
	}
	// The grants go first: whatever fails after that, none outlives the plugin.
	revoked, err := in.revokeAll(entry.Name)
	if err != nil {
		return Installed{}, err
	}
	if _, err = in.cfg.Store.Remove(name); errors.Is(err, syscall.ENOSPC) {
		in.cfg.Store.Discard(entry) // its files take the space that is missing
		_, err = in.cfg.Store.Remove(name)
	}
	if err != nil {
		return Installed{}, err
	}
	in.cfg.Engine().Forget(entry.Digest)
	in.note("remove", entry.Name, entry.Version, entry.Digest)
	return Installed{Entry: entry, Revoked: revoked}, nil
}

// revokeAll revokes all grants of a plugin. Grants that are written by hand remain, and a notice says so.
func (in *Installer) revokeAll(name string) ([]string, error) {
	rules, err := in.cfg.Rules()
	if err != nil {
		return nil, err
	}
	edit, some, err := rules.RevokeStale(name, "")
	if err == nil && some {
		err = in.WriteGrants(edit)
	}
	if err != nil {
		e := host.AsError(err)
		e.Message += "; nothing was removed, because its grants would outlive it"
		return nil, e
	}
	for _, note := range edit.Notes {
		in.cfg.Notice(note)
	}
	return edit.Removed, nil
}

// WriteGrants writes a prepared change of grants and records it in the audit log.
func (in *Installer) WriteGrants(edit policy.Edit) error {
	rules, err := in.cfg.Rules()
	if err != nil {
		return err
	}
	if err := rules.WriteGrants(edit); err != nil {
		return err
	}
	if len(edit.Removed) > 0 {
		in.note("revoke", edit.Plugin, edit.Removed...)
	}
	if len(edit.Added) > 0 {
		in.note("grant", edit.Plugin, append(append([]string{}, edit.Added...), "to "+edit.To)...)
	}
	return nil
}

// note records what an operator did. It is done by then, so a log that cannot be written is only reported.
func (in *Installer) note(op, subject string, details ...string) {
	if err := in.cfg.Audit(op, subject, details...); err != nil {
		in.cfg.Notice(err.Error())
	}
}
