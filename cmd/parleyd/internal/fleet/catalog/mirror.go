package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/policy/operator"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/internal/durable"
	"github.com/parley-tools/parley/manifest"
)

const (
	fileName = "fleet.json" // in the state folder: the lines
	cacheDir = "fleet"      // in the cache folder: manifests, segments and modules
	maxFile  = 64 << 20     // bytes

	settleTime = time.Second // for manifests that arrive, and until lines are saved
	retryTime  = 2 * time.Second
	fetchers   = 4
	maxQueue   = 1 << 16
)

// Mirror lists the published plugins at a front. It has their lines in memory and in a file, so that no list and no
// search waits for the network, and a front that starts without one lists what it knew.
type Mirror struct {
	log      func(format string, args ...any)
	start    sync.Once
	parley   *parley.Parley
	cache    *store.Store
	file     string
	policy   operator.File           // that the fleet has, with SharePolicy
	operator string                  // the public key that signs it; "" without SharePolicy
	fleet    atomic.Pointer[Catalog] // nil before Run

	mu      sync.Mutex
	plugins map[string]*plugin // by the keys of their lines
	seen    map[string]bool    // keys of the lines that were sent, until all were
	gone    bool               // some plugins are, since the lines were saved
	arrived bool               // manifests have, since the lines were saved
	changed bool               // what is listed has, or somebody waited for what has arrived
	queue   chan *plugin       // whose manifests are fetched
	listed  []host.Provider    // the plugins when they were last asked for
	version uint64             // of listed

	admitting sync.Mutex
}

// NewMirror returns a mirror. Log takes what an operator should know.
func NewMirror(log func(format string, args ...any)) *Mirror {
	return &Mirror{log: log, plugins: map[string]*plugin{}, queue: make(chan *plugin, maxQueue)}
}

// Providers is [parley.Fleet].Published. While all lines are sent again, the plugins are those of before.
func (m *Mirror) Providers(p *parley.Parley) ([]host.Provider, uint64) {
	m.start.Do(func() { m.load(p) })
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed && m.seen == nil {
		m.changed = false
		m.version++
		m.listed = make([]host.Provider, 0, len(m.plugins))
		for _, of := range m.plugins {
			m.listed = append(m.listed, of.Provider)
		}
	}
	return m.listed, m.version
}

// load reads the lines that were saved. A file that cannot be read counts as none: the fleet has all of it.
func (m *Mirror) load(p *parley.Parley) {
	m.parley, m.file = p, filepath.Join(p.Dirs().State, fileName)
	m.cache = store.Open(filepath.Join(p.Dirs().Cache, cacheDir), nil)
	data, err := protect.Read(m.file, maxFile)
	var entries []store.Entry
	if err == nil {
		entries, err = store.DecodeEntries(string(data))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.log("the saved catalog of the fleet is not used: %v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed = true
	for _, entry := range entries {
		if entry.ToolsSHA256 == "" {
			m.plugins[keyOf(entry.Name)] = m.absent(entry)
			continue
		}
		m.plugins[keyOf(entry.Name)] = m.present(entry)
		p.Admission().Vouch(entry.Digest, entry.Signer)
	}
}

// Run follows the catalog of the fleet until ctx ends.
func (m *Mirror) Run(ctx context.Context, conn *nats.Conn, p *parley.Parley) error {
	m.Providers(p)
	fleet, err := Of(conn)
	if err != nil {
		return err
	}
	m.fleet.Store(fleet)
	var all sync.WaitGroup
	for range fetchers {
		all.Go(func() { m.fetchAll(ctx) })
	}
	all.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(settleTime):
			}
			m.save()
		}
	})
	connected := conn.StatusChanged(nats.CONNECTED)
	defer conn.RemoveStatusListener(connected)
	for ctx.Err() == nil {
		if err := m.follow(ctx, fleet, connected); err != nil && ctx.Err() == nil {
			m.log("the catalog of the fleet cannot be read: %v", err)
			select {
			case <-ctx.Done():
			case <-connected:
			case <-time.After(retryTime):
			}
		}
	}
	all.Wait()
	return nil
}

// follow takes the lines of the bucket and their changes. It returns when the connection was made again, because lines
// may have gone meanwhile.
func (m *Mirror) follow(ctx context.Context, fleet *Catalog, connected <-chan nats.Status) error {
	watcher, err := fleet.watch(ctx)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	m.mu.Lock()
	m.seen = map[string]bool{}
	m.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-connected:
			return nil
		case line, more := <-watcher.Updates():
			switch {
			case !more:
				return errWatchEnded
			case line != nil:
				m.apply(line)
			default: // all lines were sent
				m.keep()
			}
		}
	}
}

// apply makes one change of the bucket.
func (m *Mirror) apply(change jetstream.KeyValueEntry) {
	key := change.Key()
	if key == policyKey {
		m.applyPolicy(change)
		return
	}
	line, err := readLine(change)
	if err != nil {
		m.log("the line of %s in the catalog of the fleet is not used: %v", manifest.CleanLine(key), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen != nil {
		m.seen[key] = true
	}
	old := m.plugins[key]
	if line.Name == "" || err != nil {
		delete(m.plugins, key)
	} else if old == nil || old.line.Digest != line.Digest || old.line.Signer != line.Signer {
		m.plugins[key] = m.absent(line)
		if m.enqueue(m.plugins[key]); old != nil {
			m.hurry(m.plugins[key])
		}
	} else {
		if !old.admitted {
			m.enqueue(old)
		}
		return
	}
	m.changed, m.arrived, m.gone = true, true, m.gone || old != nil
}

// readLine returns a line, zero for one that was deleted. What it claims is checked when the manifest is here.
func readLine(change jetstream.KeyValueEntry) (line store.Entry, err error) {
	if change.Operation() != jetstream.KeyValuePut {
		return line, nil
	}
	if line, err = store.DecodeEntry(change.Value()); err != nil {
		return line, err
	}
	if keyOf(line.Name) != change.Key() || manifest.Reserved(line.Name) || line.Kind == manifest.KindBuiltin {
		return line, errors.New("no published plugin can have its name or kind")
	}
	line.Version, line.Brief = manifest.CleanLine(line.Version), manifest.CleanLine(line.Brief)
	line.Owner, line.ReplacedOwner, line.ToolsSHA256, line.Source = "", "", "", ""
	return line, nil
}

// replace puts a plugin in the place of another one, nil of none, unless that is not published any more.
func (m *Mirror) replace(old, of *plugin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key := keyOf(old.line.Name); m.plugins[key] == old {
		m.arrived, m.changed = true, m.changed || old.awaited.Load()
		if m.plugins[key] = of; of == nil {
			delete(m.plugins, key)
		}
	}
}

// keep removes the plugins whose lines were not sent.
func (m *Mirror) keep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.plugins)
	if maps.DeleteFunc(m.plugins, func(key string, _ *plugin) bool { return !m.seen[key] }); len(m.plugins) < before {
		m.changed, m.arrived, m.gone = true, true, true
	}
	m.seen = nil
}

// save lists plugins whose manifests have arrived, writes the lines to their file if they have changed, and removes the
// files of plugins that are gone.
func (m *Mirror) save() {
	m.mu.Lock()
	if !m.arrived {
		m.mu.Unlock()
		return
	}
	m.changed = true
	entries := make([]store.Entry, 0, len(m.plugins))
	for _, of := range m.plugins {
		entries = append(entries, of.line)
	}
	gone := m.gone
	m.gone, m.arrived = false, false
	m.mu.Unlock()
	data, err := store.EncodeEntries(entries)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(m.file), 0o700), durable.Write(m.file, data))
	}
	if err != nil {
		m.log("the catalog of the fleet is not saved: %v", err)
	} else if gone {
		m.cache.Sweep(entries)
	}
}

// enqueue has the manifest of a plugin fetched. When the queue is full, it is fetched once somebody waits for it.
func (m *Mirror) enqueue(of *plugin) {
	select {
	case m.queue <- of:
	default:
	}
}

// hurry has the manifest of a plugin fetched now, because somebody waits for it.
func (m *Mirror) hurry(of *plugin) {
	if !of.awaited.Swap(true) {
		go m.fetch(context.Background(), of)
	}
}

// fetchAll fetches the manifests of the queue until ctx ends.
func (m *Mirror) fetchAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case of := <-m.queue:
			m.fetch(ctx, of)
		}
	}
}

// fetch fetches the manifest of a plugin. If it is refused, the plugin is not listed.
func (m *Mirror) fetch(ctx context.Context, of *plugin) {
	m.mu.Lock()
	current := m.plugins[keyOf(of.line.Name)] == of
	m.mu.Unlock()
	if !current {
		return
	}
	entry, err := m.admit(ctx, of.line)
	switch {
	case err == nil:
		m.replace(of, m.present(entry))
	case errors.Is(err, host.Unavailable) || errors.Is(err, host.NotFound):
		time.AfterFunc(retryTime, func() { m.enqueue(of) })
	default:
		m.log("the published plugin %s is not listed: %v", of.line.Name, err)
		m.replace(of, nil)
	}
}

// admit fetches a plugin, decides about it as about an installation, and keeps its manifest. It fetches the whole build
// because only that proves that the manifest belongs to the digest, to which policies grant rights.
func (m *Mirror) admit(ctx context.Context, line store.Entry) (store.Entry, error) {
	c, err := m.fetchBuild(ctx, line)
	if err != nil {
		return line, err
	}
	if sum := sha256.Sum256(c.ManifestJSON); hex.EncodeToString(sum[:]) != line.ManifestSHA256 ||
		!line.Describes(c.Manifest) {
		return line, host.Errorf(host.Integrity, "its manifest is not the one that its line describes")
	}
	m.admitting.Lock() // so that many new plugins leave the other cores to calls
	defer m.admitting.Unlock()
	if err := m.parley.Admission().AdmitPublished(c); err != nil {
		return line, err
	}
	line.Signer, line.Owner = c.Signer, cmp.Or(c.Signer, host.OwnerUnsigned)
	return m.cache.KeepHead(line, c.Manifest, c.ManifestJSON)
}

// fetchBuild fetches the build of a line. The error is unavailable without a connection, and that of [Catalog.Fetch].
func (m *Mirror) fetchBuild(ctx context.Context, line store.Entry) (*store.Candidate, error) {
	fleet := m.fleet.Load()
	if fleet == nil || !fleet.js.Conn().IsConnected() {
		return nil, host.Errorf(host.Unavailable, "the code of %s is not here, and the fleet cannot be reached; nothing was "+
			"run; try again when it can", line.Name)
	}
	return fleet.Fetch(ctx, line.Digest)
}
