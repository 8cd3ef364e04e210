package catalog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

// plugin is a published plugin at a front.
type plugin struct {
	line     store.Entry // as it was published, until it was admitted
	admitted bool
	awaited  atomic.Bool // somebody was told to try again
	*wasm.Provider
}

// absent returns a plugin whose manifest is not here. It is listed, without tools. Its line proves neither its build
// nor its signer.
func (m *Mirror) absent(line store.Entry) *plugin {
	of := &plugin{line: line}
	missing := host.Errorf(host.Unavailable, "the manifest of %s has not arrived from the fleet yet; nothing was run; "+
		"try again in a second", line.Name)
	info := line.Info()
	info.Digest, info.Owner = "", host.OwnerUnsigned
	head := &manifest.Manifest{Name: line.Name, Version: line.Version, Kind: line.Kind}
	head.Docs.Brief = line.Brief
	of.Provider = m.parley.Engine().Provider(store.Source{
		Info:     info,
		Manifest: func() (*manifest.Manifest, error) { return nil, missing },
		Discover: func(func(*manifest.Manifest)) (*store.Discovery, error) {
			tool := func(string) (*manifest.Tool, error) {
				m.hurry(of)
				return nil, missing
			}
			return &store.Discovery{Head: head, Tools: noTools{store.DiscoveryOf(head), tool}}, nil
		},
		Wasm:    func() ([]byte, error) { return nil, missing },
		Segment: func() ([]byte, error) { return nil, missing },
	})
	return of
}

// noTools are the tools of a plugin whose manifest is not here.
type noTools struct {
	store.Tools
	tool func(string) (*manifest.Tool, error)
}

func (t noTools) Tool(name string) (*manifest.Tool, error) { return t.tool(name) }

// present returns an admitted plugin, which is as an installed one. Its module is fetched for the first call. When its
// files cannot be read, because the cache was removed or damaged, it becomes absent.
func (m *Mirror) present(entry store.Entry) *plugin {
	of, src := &plugin{line: entry, admitted: true}, m.cache.Source(entry)
	discover, whole, module := src.Discover, src.Manifest, src.Wasm
	lost := func(err error) error {
		if err != nil {
			missing := m.absent(entry)
			m.replace(of, missing)
			m.hurry(missing)
		}
		return err
	}
	src.Discover = func(annotate func(*manifest.Manifest)) (*store.Discovery, error) {
		d, err := discover(annotate)
		return d, lost(err)
	}
	src.Manifest = func() (*manifest.Manifest, error) {
		whole, err := whole()
		return whole, lost(err)
	}
	src.Wasm = func() ([]byte, error) {
		if _, err := os.Stat(src.File); errors.Is(err, fs.ErrNotExist) {
			c, err := m.fetchBuild(context.Background(), entry)
			if err == nil {
				err = m.cache.KeepModule(entry, c.Wasm)
			}
			if err != nil {
				return nil, err
			}
		}
		data, err := module()
		if errors.Is(err, host.Integrity) {
			_ = os.Remove(src.File) // the next call fetches it
		}
		return data, lost(err)
	}
	of.Provider = m.parley.Engine().Provider(src)
	return of
}
