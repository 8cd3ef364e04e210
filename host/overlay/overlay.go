// Package overlay stores the operator's edits of documentation and shows plugins with them.
package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/host/segment"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Wrap returns a plugin with an overlay, which is loaded when documentation is first read.
func Wrap(p host.Provider, load func() (*Overlay, error), segment func() []byte) host.Provider {
	o := &overlaid{Provider: p, segment: segment, overlay: sync.OnceValues(load)}
	o.manifest = sync.OnceValues(func() (*manifest.Manifest, error) { return o.edited(p.Manifest) })
	return o
}

// overlaid is a plugin whose documentation has edits. Everything else is the plugin's.
type overlaid struct {
	host.Provider
	overlay  func() (*Overlay, error)
	segment  func() []byte // the segment with the edits; nil, or a nil result, builds it
	tools    sync.Map      // name -> *manifest.Tool
	manifest func() (*manifest.Manifest, error)
}

// Base returns the plugin without the overlay.
func (p *overlaid) Base() host.Provider { return p.Provider }

func (p *overlaid) Tool(name string) (*manifest.Tool, error) {
	if t, ok := p.tools.Load(name); ok {
		return t.(*manifest.Tool), nil
	}
	t, err := p.Provider.Tool(name)
	if t == nil || err != nil {
		return t, err
	}
	o, err := p.overlay()
	if err != nil {
		return nil, err
	}
	t = o.Apply(t)
	p.tools.Store(name, t)
	return t, nil
}

func (p *overlaid) Manifest() (*manifest.Manifest, error) { return p.manifest() }

// edited returns a manifest of the plugin with the edits.
func (p *overlaid) edited(of func() (*manifest.Manifest, error)) (*manifest.Manifest, error) {
	base, err := of()
	if err != nil {
		return nil, err
	}
	o, err := p.overlay()
	if err != nil {
		return nil, err
	}
	m := *base
	m.Tools = slices.Clone(m.Tools)
	for i := range m.Tools {
		m.Tools[i] = *o.Apply(&m.Tools[i])
	}
	return &m, nil
}

func (p *overlaid) Lines(group string) ([]host.Line, error) {
	lines, err := p.Provider.Lines(group)
	if err != nil {
		return nil, err
	}
	o, err := p.overlay()
	if err != nil {
		return nil, err
	}
	lines = slices.Clone(lines)
	for i := range lines {
		for _, brief := range o.Values(lines[i].Name, Brief) {
			lines[i].Brief = manifest.CleanLine(brief)
		}
	}
	return lines, nil
}

func (p *overlaid) Segment() ([]byte, error) {
	if p.segment != nil {
		if stored := p.segment(); stored != nil && segment.Check(stored) == nil {
			return stored, nil
		}
	}
	o, err := p.overlay()
	if err != nil {
		return nil, err
	}
	return Segment(p.Provider, o)
}

// Segment returns the search segment of a plugin with an overlay.
func Segment(p host.Provider, o *Overlay) ([]byte, error) {
	m, err := host.WholeManifest(p)
	if err != nil {
		return nil, err
	}
	var docs []segment.Doc
	if own := p.Features().SearchDocs; own != nil {
		docs = own()
	} else {
		docs = segment.DocsOf(m)
	}
	for i := range docs {
		applyToSearch(o, &docs[i])
	}
	return segment.Build(segment.PluginOf(m), docs), nil
}

// applyToSearch adds the edits of a tool to what search indexes of it.
func applyToSearch(o *Overlay, d *segment.Doc) {
	for e := range o.of(d.Name) {
		value := manifest.CleanLine(e.Value)
		switch e.Field {
		case Brief:
			d.Brief = value
		case Standard, Full, When:
			d.Text += " " + value
		case Alias:
			d.Aliases = lists.Add(slices.Clip(d.Aliases), value)
		case Keyword:
			d.Keywords = lists.Add(slices.Clip(d.Keywords), value)
		case Task:
			d.Tasks = lists.Add(slices.Clip(d.Tasks), value)
		case Phrase:
			d.Phrases = lists.Add(d.Phrases, value)
		case ParamAlias:
			d.Params = append(slices.Clip(d.Params), segment.Param{Name: value})
		}
	}
}

func (p *overlaid) Features() host.Features {
	f := p.Provider.Features()
	describe, flow := f.Describe, f.Flow
	if describe == nil {
		describe = func(t *manifest.Tool, tier int) *manifest.ToolDocs {
			m, err := p.Manifest()
			if err != nil {
				m = &manifest.Manifest{Name: p.Info().Name}
			}
			return manifest.Describe(m, t, tier)
		}
	}
	f.Describe = func(t *manifest.Tool, tier int) *manifest.ToolDocs {
		d := describe(t, tier)
		o, err := p.overlay()
		if err != nil {
			return d
		}
		before := append(o.Values(t.Name, Need), o.Values(t.Name, From)...)
		if flow != nil && tier > manifest.Tier1 && len(before) > 0 {
			d.SetFlow(flowOf(o, t, flow(t.Name)))
		}
		if tier == manifest.Tier2 {
			dropRare(o, d, t.Name)
		}
		return d
	}
	if flow != nil { // else the manifest says all, and it has the edits
		f.Flow = func(tool string) *manifest.Flow {
			o, err := p.overlay()
			t, unknown := p.Provider.Tool(tool)
			if err != nil || unknown != nil || t == nil {
				return flow(tool)
			}
			return flowOf(o, t, flow(tool))
		}
	}
	if whole := f.Whole; whole != nil {
		f.Whole = func() (*manifest.Manifest, error) { return p.edited(whole) }
	}
	f.Overlaid = true
	return f
}

// flowOf adds the edits of a tool to the flow that its plugin gives for it.
func flowOf(o *Overlay, t *manifest.Tool, of *manifest.Flow) *manifest.Flow {
	added := manifest.Flow{}
	for e := range o.of(t.Name) {
		if e.Field == Need {
			added.Needs = append(added.Needs, manifest.FlowCall{Tool: e.Value})
		}
		from, result, ok := manifest.SplitSource(e.Value)
		if e.Field == From && ok {
			required := slices.ContainsFunc(manifest.Params(t.Params),
				func(p manifest.Param) bool { return p.Name == e.Param && p.Required })
			added.Values = append(added.Values, manifest.Value{Pointer: "/" + jsontext.EscapeToken(e.Param), Required: required,
				From: []manifest.Source{{FlowCall: manifest.FlowCall{Tool: from}, Result: result}}})
		}
	}
	if of == nil {
		return &added
	}
	return &manifest.Flow{Needs: slices.Concat(of.Needs, added.Needs), Values: slices.Concat(of.Values, added.Values)}
}

// dropRare leaves the parameters that nobody uses to tier 3, except for their names.
func dropRare(o *Overlay, d *manifest.ToolDocs, tool string) {
	for e := range o.of(tool) {
		i := slices.IndexFunc(d.Parameters, func(p manifest.Param) bool { return p.Name == e.Param && !p.Required })
		if i >= 0 && e.Field == Rare {
			d.Parameters = slices.Delete(slices.Clone(d.Parameters), i, i+1)
			d.MoreParameters = append(slices.Clip(d.MoreParameters), e.Param)
		}
	}
}

// Store is the folder of the operator's overlays: one file for each plugin, NAME@BUILD.json, for one build of it.
type Store struct {
	Dir    string
	Notice func(text string) // takes what a person should know; may be nil
}

const (
	overlaySuffix = ".json"
	segmentSuffix = ".segment"
	droppedSuffix = ".dropped"
	maxOverlay    = 16 << 20
	maxSegment    = 1 << 30
)

// buildKey returns the part of a file's name that stands for a build.
func buildKey(i host.Info) string {
	build := strings.TrimPrefix(i.Build(), "sha256:")
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(build))
	return safe[:min(len(safe), 16)]
}

func (s *Store) path(i host.Info, suffix string) string {
	return filepath.Join(s.Dir, i.Name+"@"+buildKey(i)+suffix)
}

// Wrap returns plugins with their overlays. An overlay of another build is dropped, with a notice: its file gets the
// suffix ".dropped".
func (s *Store) Wrap(providers []host.Provider) []host.Provider {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return providers // there are none, or the folder cannot be read, in which case nothing is edited
	}
	wrapped := slices.Clone(providers)
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), overlaySuffix)
		if !ok {
			continue
		}
		plugin, key, _ := strings.Cut(name, "@")
		i := slices.IndexFunc(wrapped, func(p host.Provider) bool { return strings.EqualFold(p.Info().Name, plugin) })
		switch {
		case i < 0: // not installed now
		case buildKey(wrapped[i].Info()) == key:
			wrapped[i] = s.wrap(wrapped[i])
		default:
			s.drop(name)
		}
	}
	return wrapped
}

func (s *Store) drop(name string) {
	path := filepath.Join(s.Dir, name)
	if os.Rename(path+overlaySuffix, path+droppedSuffix) != nil {
		return
	}
	_ = os.Remove(path + segmentSuffix)
	if plugin, _, _ := strings.Cut(name, "@"); s.Notice != nil {
		s.Notice("the edits of " + plugin + " are for another build (docs list), and were dropped: " + path + droppedSuffix)
	}
}

func (s *Store) wrap(p host.Provider) host.Provider {
	info := p.Info()
	return Wrap(p, func() (*Overlay, error) { return s.Load(info) }, func() []byte {
		path := s.path(info, segmentSuffix)
		if protect.ModTime(path).Before(protect.ModTime(s.path(info, overlaySuffix))) { // the file was edited by hand
			return nil
		}
		segment, err := protect.Read(path, maxSegment)
		if err != nil {
			return nil
		}
		return segment
	})
}

// Load returns the overlay of a build. It has no edits if there is none.
func (s *Store) Load(i host.Info) (*Overlay, error) {
	path := s.path(i, overlaySuffix)
	data, err := protect.Read(path, maxOverlay)
	if errors.Is(err, fs.ErrNotExist) {
		return &Overlay{}, nil
	}
	o := &Overlay{}
	if err == nil {
		err = json.Unmarshal(data, o)
	}
	if err != nil {
		return nil, &host.Error{Code: host.ConfigError, Message: fmt.Sprintf("the edits of %s cannot be read: %s", i.Name,
			manifest.CleanLine(err.Error())), Cause: err, Next: []string{"correct or remove " + path}}
	}
	return o, nil
}

// Change replaces the overlay of a plugin.
type Change struct {
	Provider host.Provider
	From, To *Overlay // From is the one that was loaded
}

// Save replaces overlays and their search segments: all of them or, with an error, none. Without edits it removes the
// files of a plugin. The error is busy if an overlay is no longer what was loaded.
func (s *Store) Save(changes ...Change) error {
	if err := protect.Dir(s.Dir); err != nil {
		return err
	}
	lock := protect.NewLock(filepath.Join(s.Dir, ".lock"))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Unlock()
	var prepared []func() error
	for _, c := range changes {
		base := host.Base(c.Provider)
		now, err := s.Load(base.Info())
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(now.Edits, c.From.Edits) {
			return host.Errorf(host.Busy, "the edits of %s have changed in the meantime; nothing was written", base.Info().Name)
		}
		write, err := s.prepare(base, c.To)
		if err != nil {
			return err
		}
		prepared = append(prepared, write)
	}
	for i, write := range prepared {
		if err := write(); err != nil {
			for _, c := range changes[:i+1] {
				if undo, failed := s.prepare(host.Base(c.Provider), c.From); failed != nil || undo() != nil {
					return fmt.Errorf("%w; the edits of %s were written", err, c.Provider.Info().Name)
				}
			}
			return err
		}
	}
	return nil
}

// prepare writes the files of an overlay beside the present ones, and returns the function that replaces these.
func (s *Store) prepare(base host.Provider, o *Overlay) (write func() error, err error) {
	path, segmentPath := s.path(base.Info(), overlaySuffix), s.path(base.Info(), segmentSuffix)
	if len(o.Edits) == 0 {
		return func() error {
			err := os.Remove(path)
			_ = os.Remove(segmentPath)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}, nil
	}
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return nil, err
	}
	segment, err := Segment(base, o)
	if err != nil {
		return nil, err
	}
	const temp = ".new"
	if err := os.WriteFile(path+temp, append(data, '\n'), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(segmentPath+temp, segment, 0o600); err != nil {
		return nil, err
	}
	return func() error {
		if err := os.Rename(path+temp, path); err != nil {
			return err
		}
		return os.Rename(segmentPath+temp, segmentPath) // an older segment is ignored
	}, nil
}
