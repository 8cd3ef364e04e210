package command

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/oci"
	"github.com/parley-tools/parley/host/policy"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/manifest"
)

// IsRemote reports whether a word names a plugin of a registry or a server: oci://, https:// or http://.
func IsRemote(word string) bool {
	for _, scheme := range []string{oci.Scheme, "https://", "http://"} {
		if strings.HasPrefix(word, scheme) {
			return true
		}
	}
	return false
}

// registry returns the client for registries and servers. Credentials are those of Docker.
func (d *Deps) registry(progress func(done, total int64)) *oci.Client {
	return &oci.Client{
		Config: protect.DockerFolder(d.Env), Dir: filepath.Join(d.Dirs().Cache, "downloads"), Progress: progress,
	}
}

// fetch fetches a remote plugin.
func (d *Deps) fetch(ctx context.Context, from string, progress func(done, total int64)) (*oci.Fetched, error) {
	client := d.registry(progress)
	if !strings.HasPrefix(from, oci.Scheme) {
		return client.Get(ctx, from)
	}
	ref, err := oci.ParseReference(from)
	if err != nil {
		return nil, err
	}
	return client.Pull(ctx, ref)
}

// tagMoved says how the tag that a build came from has moved to another artifact, "" if it has not. Both are sources of
// the lock file.
func tagMoved(before, now string) string {
	was, err := oci.ParseReference(before)
	is, failed := oci.ParseReference(now)
	if err != nil || failed != nil || was.Tag() == "" || was.Tag() != is.Tag() || before == now {
		return ""
	}
	return "The tag " + was.Tag() + " has moved, from " + was.Digest() + " to " + is.Digest() + "."
}

// PushOptions say what to push, and where.
type PushOptions struct {
	// Plugin is a wasm file, a folder with plugin.wasm, or the name of an installed plugin.
	Plugin string
	// To is the reference: oci://HOST/NAME:TAG. Without a tag it is that of the version.
	To string
	// Progress gets how many bytes were sent. It may be nil.
	Progress func(done, total int64)
}

// PushData is an artifact that was pushed.
type PushData struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Reference string `json:"reference"` // with the digest
	Digest    string `json:"digest"`    // of the artifact
	Signed    bool   `json:"signed"`
}

// PushPlugin pushes a plugin to a registry, with its signature if it is signed. The manifest must be in the module.
func PushPlugin(ctx context.Context, d *Deps, o PushOptions) (*PushData, error) {
	c, err := d.fileOrInstalled(o.Plugin)
	if err != nil {
		return nil, err
	}
	if !c.ManifestEmbedded {
		return nil, host.Errorf(host.InvalidPlugin, "the manifest of %s is a separate file, which a registry cannot hold; "+
			"put it into the module first", c.Manifest.Name).WithSteps(host.OperatorStep(host.OpPluginPack, o.Plugin))
	}
	if _, err := d.Parley().VerifySignature(c); err != nil {
		return nil, err
	}
	ref, err := oci.ParseReference(o.To)
	if err != nil {
		return nil, err
	}
	if name := o.To[strings.LastIndex(o.To, "/")+1:]; !strings.ContainsAny(name, ":@") {
		if ref, err = oci.ParseReference(o.To + ":" + strings.ReplaceAll(c.Manifest.Version, "+", "_")); err != nil {
			return nil, err
		}
	}
	digest, err := d.registry(o.Progress).Push(ctx, ref, oci.Plugin{
		Name: c.Manifest.Name, Version: c.Manifest.Version, Brief: manifest.CleanLine(c.Manifest.Docs.Brief),
		Wasm: c.Wasm, Signature: c.Signature,
	})
	if err != nil {
		return nil, err
	}
	return &PushData{c.Manifest.Name, c.Manifest.Version, ref.String() + "@" + digest, digest, c.Signature != nil}, nil
}

// PullOptions say what to fetch into a file.
type PullOptions struct {
	From string // oci://.. or https://..
	// Out is the file; "" means NAME.wasm. It must not exist. A signature goes beside it.
	Out      string
	Progress func(done, total int64)
}

// PullData is a plugin that was fetched.
type PullData struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Reference string `json:"reference"` // with the digest
	Out       string `json:"out"`
	Signature string `json:"signature,omitempty"` // the file
}

// PullPlugin fetches a plugin into a file, without installing it.
func PullPlugin(ctx context.Context, d *Deps, o PullOptions) (*PullData, error) {
	if !IsRemote(o.From) {
		return nil, host.Errorf(host.InvalidURL, "%s is not remote; expected oci://HOST/NAME:TAG or https://..",
			manifest.CleanLine(o.From)).WithSteps(host.OperatorStep(host.OpHelp, "plugin pull"))
	}
	fetched, err := d.fetch(ctx, o.From, o.Progress)
	if err != nil {
		return nil, err
	}
	c, err := wasm.ReadCandidate(fetched.Path, parley.Version)
	if err != nil {
		return nil, err
	}
	data := &PullData{Name: c.Manifest.Name, Version: c.Manifest.Version, Reference: fetched.Source,
		Out: cmp.Or(o.Out, c.Manifest.Name+".wasm")}
	if _, err := os.Lstat(data.Out); !errors.Is(err, fs.ErrNotExist) {
		return nil, host.Errorf(host.AlreadyExists, "%s exists already; nothing was written", manifest.CleanLine(data.Out)).
			WithSteps(host.OperatorStep(host.OpPluginPull, o.From, "--out", "FILE"))
	}
	err = writeFile(data.Out, c.Wasm)
	if err == nil && fetched.Signature != nil {
		data.Signature = wasm.SignatureName(data.Out)
		err = writeFile(data.Signature, fetched.Signature)
	}
	if err != nil {
		return nil, host.Errorf(host.Unavailable, "cannot write the plugin: %v", err)
	}
	return data, nil
}

// UpdateOptions say which plugin to update.
type UpdateOptions struct {
	Name     string
	Yes      bool // approve without asking, if the policy allows it
	Progress func(done, total int64)
}

// UpdatePlugin installs what the tag, or the URL, that a plugin came from now means, once the operator has approved. It
// keeps those rights of the old build that the new one asks for too; it gains none. A build of another signer is
// refused.
func UpdatePlugin(ctx context.Context, d *Deps, o UpdateOptions) (*Plugin, error) {
	entry, err := d.Store().Find(o.Name)
	if err != nil {
		return nil, err
	}
	from := entry.Source
	if ref, err := oci.ParseReference(from); err == nil && ref.Tag() != "" {
		from = ref.Tag()
	} else if url, _, ok := strings.Cut(from, "#"); ok && IsRemote(from) {
		from = url
	}
	if !IsRemote(from) {
		return nil, host.Errorf(host.InvalidArgs, "%s was installed from the file %s, which cannot be asked for updates; "+
			"install the new file", entry.Name, manifest.CleanLine(entry.Source)).
			WithSteps(host.OperatorStep(host.OpPluginShow, entry.Name))
	}
	rules, err := d.Policy()
	if err != nil {
		return nil, err
	}
	fetched, err := d.fetch(ctx, from, o.Progress)
	if err != nil {
		return nil, err
	}
	c, err := wasm.ReadCandidate(fetched.Path, parley.Version)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(c.Manifest.Name, entry.Name) {
		return nil, host.Errorf(host.Integrity, "%s now has the plugin %s, not %s; nothing was changed", from,
			c.Manifest.Name, entry.Name)
	}
	options := InstallOptions{Path: fetched.Source, Yes: o.Yes, Progress: o.Progress}
	if c.Digest != entry.Digest {
		if options.Grants, err = d.carried(rules, entry, c); err != nil {
			return nil, err
		}
	}
	return InstallPlugin(ctx, d, options)
}

// ScriptsData are the installed plugins of kind script whose engine was replaced by another build.
type ScriptsData struct {
	Updated []string `json:"updated"` // are bound to the engine that is installed now
}

// UpdateScripts checks the installed scripts that are bound to another build of their engine than the one that is
// installed now, and binds them to it. It stops at the first that this engine cannot run.
func UpdateScripts(ctx context.Context, d *Deps) (*ScriptsData, error) {
	stale, err := d.staleScripts()
	if err != nil {
		return nil, err
	}
	data := &ScriptsData{Updated: []string{}}
	for _, entry := range stale {
		if err := d.Parley().BindScript(ctx, entry); err != nil {
			return nil, err
		}
		data.Updated = append(data.Updated, entry.Name)
	}
	return data, nil
}

// staleScripts returns the installed scripts that are bound to another build of their engine.
func (d *Deps) staleScripts() ([]wasm.Entry, error) {
	entries, err := d.Store().List()
	if err != nil {
		return nil, err
	}
	var stale []wasm.Entry
	for _, entry := range entries {
		if entry.Kind != manifest.KindScript {
			continue
		}
		source := d.Store().Source(entry)
		source.Engine = "" // any build
		if engine, err := d.Parley().Engine().Provider(source).EngineDigest(); err != nil || engine != entry.Engine {
			stale = append(stale, entry) // an engine that is missing is said by the update
		}
	}
	return stale, nil
}

// noticeScripts says that installed scripts are bound to a build of an engine that was replaced.
func (d *Deps) noticeScripts() {
	stale, err := d.staleScripts()
	if err != nil || len(stale) == 0 {
		return
	}
	names := make([]string, len(stale))
	for i, entry := range stale {
		names[i] = entry.Name
	}
	d.Notice("these scripts were installed for another build of their engine and do not run until parley plugin update " +
		"--scripts binds them to this one: " + strings.Join(names, ", "))
}

// carried returns the grants of an installed build that a new one asks for too.
func (d *Deps) carried(rules *policy.Policy, entry wasm.Entry, c *wasm.Candidate) ([]string, error) {
	old, err := d.Store().Open(entry)
	if err != nil {
		return nil, err
	}
	var grants []string
	for _, text := range applyingRights(rules, old) {
		if g, err := policy.ParseGrant(text); err == nil && g.RequestedBy(c.Manifest.Capabilities) {
			grants = append(grants, text)
		}
	}
	return grants, nil
}
