// Package catalog publishes plugins to the fronts and the workers of a fleet, and lists them at each front.
//
// A plugin's module and its manifest, with its signature, are objects of a bucket, under names that begin with the
// digest of the build. What lists show of it is a line in a key-value bucket, under its name in lower case: the entry
// that a lock file has, without what concerns one machine.
package catalog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/host/signature"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

// What an account has: two buckets, and a stream.
const (
	Code    = "parley_code"    // an object store of builds, by digest
	Lines   = "parley_catalog" // a key-value bucket with a line for each published plugin
	Records = "parley_records" // a stream of what fronts record, on the subjects parley.v1.record.WORD.FRONT
)

// The objects of a build: its digest and one of the suffixes.
const (
	manifestPart = "/manifest"
	modulePart   = "/module"
	signatureKey = "signature" // in the metadata of the object of a manifest
	origin       = "the fleet" // of a build, for messages
)

const (
	maxModule   = grant.MaxModuleMiB << 20
	chunk       = 128 << 10 // of an object, unless the server takes less
	headers     = 1 << 10   // of a chunk
	maxAttempts = 20        // to write a line that others write, too
	objectTime  = 30 * time.Second
)

// Catalog is what is published in a fleet.
type Catalog struct{ js jetstream.JetStream }

// Of returns what is published in the fleet of a connection.
func Of(conn *nats.Conn) (*Catalog, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, failed(err, "reach the catalog of the fleet")
	}
	return &Catalog{js}, nil
}

// Provision makes the buckets and the stream of an account where they are missing. It leaves those that exist as they
// are, since an operator may have given them other limits. Only the key of the operator may do so.
func (c *Catalog) Provision(ctx context.Context) error {
	_, err := c.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: Code, Description: "builds of plugins"})
	if err == nil || errors.Is(err, jetstream.ErrBucketExists) {
		_, err = c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: Lines, Description: "published plugins"})
	}
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return failed(err, "make the buckets "+Code+" and "+Lines)
	}
	// The word is random, and only those who may read the stream's state know it: whoever may read another stream can have
	// the server publish what it reads to any subject.
	_, err = c.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: Records, Description: "records of calls", Subjects: []string{"parley.v1.record." + rand.Text() + ".*"},
		AllowDirect: true,
		Discard:     jetstream.DiscardNew, // a full stream refuses records and keeps those that it has
		DenyDelete:  true, DenyPurge: true,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return failed(err, "make the stream "+Records)
	}
	return nil
}

// PublishInstalled is [Catalog.Publish] for an installed plugin of a host.
func (c *Catalog) PublishInstalled(ctx context.Context, p *parley.Parley, name string) (store.Entry, error) {
	listed, err := p.Catalog()
	if err != nil {
		return store.Entry{}, err
	}
	if of, ok := listed.Provider(name); ok && of.Info().Owner == host.OwnerShipped {
		return store.Entry{}, host.Errorf(host.InvalidArgs, "%s is shipped: every front and worker of this version has it",
			of.Info().Name)
	}
	entry, err := p.Store().Find(name)
	if err != nil {
		return entry, err
	}
	build, err := p.Store().Open(entry)
	if err != nil {
		return entry, err
	}
	build.Engine = entry.Engine
	return c.Publish(ctx, build)
}

// Publish makes a plugin known to all fronts, and returns its line. To publish the same build again writes nothing. The
// error is already_exists if the name belongs to another signer, and integrity for an invalid signature, or a version
// that is older than the published one.
func (c *Catalog) Publish(ctx context.Context, build *store.Candidate) (store.Entry, error) {
	line, err := lineOf(build)
	if err != nil {
		return line, err
	}
	what := "publish " + line.Name
	lines, err := c.js.KeyValue(ctx, Lines)
	if err != nil {
		return line, failed(err, what)
	}
	for range maxAttempts {
		old, revision, err := current(ctx, lines, line.Name)
		known := old.Digest == line.Digest && (line.Signer == "" || line.Signer == old.Signer)
		switch owner := old.Info().Owner; {
		case err != nil:
			return line, err
		case known:
			line = old // a signature is only replaced by a better one
		case revision > 0 && owner != host.OwnerUnsigned && owner != line.Owner:
			return line, host.Errorf(host.AlreadyExists, "the name %s belongs in this fleet to the signer %s, who did not "+
				"sign this build; give the plugin another name, or withdraw theirs first. Nothing was published", line.Name, owner)
		case revision > 0 && store.Older(line.Version, old.Version):
			return line, host.Errorf(host.Integrity, "%s %s is published, and %s is older; withdraw the newer version first. "+
				"Nothing was published", old.Name, manifest.CleanLine(old.Version), manifest.CleanLine(line.Version))
		}
		if err := c.putParts(ctx, build, line.Digest); err != nil || known {
			return line, failed(err, what)
		}
		value, err := manifest.Marshal(line)
		if err == nil && revision == 0 {
			_, err = lines.Create(ctx, keyOf(line.Name), value)
		} else if err == nil {
			_, err = lines.Update(ctx, keyOf(line.Name), value, revision)
		}
		if !errors.Is(err, jetstream.ErrKeyExists) && !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return line, failed(err, what)
		}
	}
	return line, host.Errorf(host.Busy, "others published %s %d times meanwhile; publish it again", line.Name, maxAttempts)
}

// keyOf returns the key of the line of a plugin: names are compared without regard to case.
func keyOf(name string) string { return strings.ToLower(name) }

// lineOf returns the line of a plugin, with the key that signed it.
func lineOf(c *store.Candidate) (store.Entry, error) {
	signer := signature.Key("")
	if c.Signature != nil {
		s, err := signature.Parse(c.Signature)
		if err == nil {
			signer, err = s.Verify(admit.BuildOf(c), signature.Key(c.Signer))
		}
		if err != nil && !errors.Is(err, signature.ErrUnknownKey) {
			return store.Entry{}, host.Errorf(host.Integrity, "%s is not published: %v", c.Manifest.Name, err)
		}
	}
	line := store.NewEntry(c)
	line.Source, line.Signer, line.ReplacedOwner = "", string(signer), ""
	line.Owner = cmp.Or(line.Signer, host.OwnerUnsigned)
	return line, nil
}

// current returns the line of a plugin and its revision, 0 if there is none.
func current(ctx context.Context, lines jetstream.KeyValue, name string) (store.Entry, uint64, error) {
	found, err := lines.Get(ctx, keyOf(name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return store.Entry{}, 0, nil
	}
	if err != nil {
		return store.Entry{}, 0, failed(err, "read the catalog of the fleet")
	}
	line, err := store.DecodeEntry(found.Value())
	if err != nil {
		err = host.Errorf(host.Integrity, "the line of %s in the catalog of the fleet is not valid: %v; withdraw it", name,
			err)
	}
	return line, found.Revision(), err
}

// Withdraw takes a plugin from the lists of all fronts. Its objects stay until [Catalog.Prune], for calls under way.
func (c *Catalog) Withdraw(ctx context.Context, name string) error {
	lines, err := c.js.KeyValue(ctx, Lines)
	if err == nil {
		_, err = lines.Get(ctx, keyOf(name))
	}
	if err == nil {
		err = lines.Delete(ctx, keyOf(name))
	}
	return failed(err, "withdraw "+host.Printable(name))
}

// Prune removes the objects of builds that no line has. It keeps those that were stored, or whose plugin's line has
// changed, within the time keep: others may publish them now, and calls under way may fetch them.
func (c *Catalog) Prune(ctx context.Context, keep time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, objectTime)
	defer cancel()
	defer func() { err = failed(err, "remove the code of old builds") }()
	code, err := c.js.ObjectStore(ctx, Code)
	if err != nil {
		return err
	}
	objects, err := code.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return err
	}
	stream, err := c.js.Stream(ctx, "KV_"+Lines)
	if err != nil {
		return err
	}
	now := stream.CachedInfo().TimeStamp // by the clock of the server, as all that follows
	watcher, err := c.watch(ctx)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	digests, changed := map[string]bool{}, map[string]time.Time{}
	for line, more := <-watcher.Updates(); line != nil || !more; line, more = <-watcher.Updates() {
		if !more {
			return cmp.Or(ctx.Err(), errWatchEnded)
		}
		entry, _ := store.DecodeEntry(line.Value())
		digests[entry.Digest], changed[line.Key()] = true, line.Created()
	}
	for _, object := range objects {
		digest, _, _ := strings.Cut(object.Name, "/")
		since := min(now.Sub(object.ModTime), now.Sub(changed[keyOf(object.Description)]))
		if err == nil && !digests[digest] && since > keep {
			err = code.Delete(ctx, object.Name)
		}
	}
	return err
}

// errWatchEnded is the error of a watch whose updates have ended.
var errWatchEnded = errors.New("the server has ended the watch")

// watch sends all lines, then nil, then their changes until ctx ends.
func (c *Catalog) watch(ctx context.Context) (jetstream.KeyWatcher, error) {
	lines, err := c.js.KeyValue(ctx, Lines)
	if err != nil {
		return nil, err
	}
	return lines.WatchAll(ctx)
}

// putParts stores what of a build is not stored yet.
func (c *Catalog) putParts(ctx context.Context, build *store.Candidate, digest string) error {
	code, err := c.js.ObjectStore(ctx, Code)
	if err != nil {
		return err
	}
	size := min(chunk, int(c.js.Conn().MaxPayload())-headers)
	for _, part := range []struct {
		name      string
		data      []byte
		signature string
	}{{modulePart, build.Wasm, ""}, {manifestPart, build.ManifestJSON, string(build.Signature)}} {
		stored, err := code.GetInfo(ctx, digest+part.name)
		if err == nil && (part.signature == "" || stored.Metadata[signatureKey] == part.signature) {
			continue
		}
		if err == nil || errors.Is(err, jetstream.ErrObjectNotFound) {
			_, err = code.Put(ctx, jetstream.ObjectMeta{Name: digest + part.name, Description: build.Manifest.Name,
				Metadata: map[string]string{signatureKey: part.signature},
				Opts:     &jetstream.ObjectMetaOptions{ChunkSize: uint32(size)}}, bytes.NewReader(part.data))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Fetch returns the published build of a digest as if it had been read from files: its manifest and its module are
// valid and have the digest. Its signature is not verified. The error is not_found if there is no such build, integrity
// if it is another one, and unavailable if the fleet does not send it within 30 seconds.
func (c *Catalog) Fetch(ctx context.Context, digest string) (*store.Candidate, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTime)
	defer cancel()
	manifestJSON, signed, err := c.get(ctx, digest+manifestPart, manifest.MaxSize)
	if errors.Is(err, host.NotFound) {
		err = host.Errorf(host.NotFound, "the fleet has no build %s; parleyd fleet publish publishes an installed plugin",
			digest)
	}
	if err != nil {
		return nil, err
	}
	module, _, err := c.get(ctx, digest+modulePart, maxModule)
	if err != nil {
		return nil, err
	}
	if found := store.Digest(module, manifestJSON); found != digest {
		return nil, host.Errorf(host.Integrity, "the fleet has another build at %s: %s; it was not used", digest, found)
	}
	return store.NewCandidate(origin, module, manifestJSON, signed, parley.Version)
}

// get reads an object of at most limit bytes, and the signature that it has; nil if it has none.
func (c *Catalog) get(ctx context.Context, name string, limit int64) (data, signed []byte, err error) {
	what := "fetch " + name + " from the fleet"
	code, err := c.js.ObjectStore(ctx, Code)
	if err != nil {
		return nil, nil, failed(err, what)
	}
	object, err := code.Get(ctx, name)
	if err != nil {
		return nil, nil, failed(err, what)
	}
	defer object.Close()
	data, err = io.ReadAll(io.LimitReader(object, limit+1)) // at its end, the object is compared with its own digest
	if len(data) > int(limit) {
		return nil, nil, host.Errorf(host.LimitExceeded, "cannot %s: it has more than %d bytes, the most that are read", what,
			limit)
	}
	info, errInfo := object.Info()
	if err = cmp.Or(err, errInfo); err != nil {
		return nil, nil, failed(err, what)
	}
	if text := info.Metadata[signatureKey]; text != "" {
		signed = []byte(text)
	}
	return data, signed, nil
}

// failed returns the error of what the fleet did not do, nil without an error.
func failed(err error, what string) error {
	if _, known := errors.AsType[*host.Error](err); known || err == nil {
		return err
	}
	code := host.Unavailable
	if errors.Is(err, jetstream.ErrObjectNotFound) || errors.Is(err, jetstream.ErrKeyNotFound) {
		code = host.NotFound
	}
	return &host.Error{Code: code, Cause: err,
		Message: fmt.Sprintf("cannot %s: %s", what, manifest.CleanLine(err.Error()))}
}
