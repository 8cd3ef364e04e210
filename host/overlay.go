package host

import (
	"crypto/sha256"
	"encoding/hex"
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
	"time"

	"github.com/gofrs/flock"

	"github.com/parley-tools/parley/host/protect"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// Fields of a tool that an [Edit] can change. There is none for a schema, an effect, a right or an exit code.
const (
	EditBrief    = "brief"
	EditStandard = "standard"
	EditFull     = "full"
	EditWhen     = "when"
	EditWhenNot  = "when_not"

	EditAlias   = "alias" // these add to a list
	EditKeyword = "keyword"
	EditTask    = "task"
	EditPhrase  = "phrase" // as a task, of which search knows that it is not the author's
	EditNeed    = "need"
	EditExample = "example" // comes first

	EditParam      = "param"       // the description of a parameter
	EditParamAlias = "param_alias" // another name of it, that corrections know
	EditFrom       = "from"        // an item of its x-from
	EditRare       = "rare"        // tier 2 has only its name
)

// EditFields are all fields, in the order in which documentation has them.
func EditFields() []string {
	return []string{EditBrief, EditStandard, EditFull, EditWhen, EditWhenNot, EditAlias, EditKeyword, EditTask, EditPhrase,
		EditNeed, EditExample, EditParam, EditParamAlias, EditFrom, EditRare}
}

// Edit is a change of a tool's documentation that the operator applied.
type Edit struct {
	Tool  string `json:"tool"` // local
	Field string `json:"field"`
	Param string `json:"param,omitempty"` // for those fields that are about a parameter
	Value string `json:"value,omitempty"`
	// Example is the value of EditExample.
	Example *manifest.Example `json:"example,omitempty"`
	Origin  string            `json:"origin,omitempty"` // what proposed it, such as "rule enum"
	// Scores are those of the texts before and after it and the edits that it was applied with, if they were measured.
	Scores  *EditScores `json:"scores,omitempty"`
	Applied time.Time   `json:"applied,omitzero"`
}

// EditScores are the scores of a tool's texts before and after edits.
type EditScores struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// Replaced returns the text of a tool that an edit replaces, "" if it adds something.
func (e *Edit) Replaced(t *manifest.Tool) string {
	if t == nil {
		return ""
	}
	switch e.Field {
	case EditBrief:
		return t.Docs.Brief
	case EditStandard:
		return t.Docs.Standard
	case EditFull:
		return t.Docs.Full
	case EditWhen:
		return t.When
	case EditWhenNot:
		return t.WhenNot
	case EditParam:
		for _, p := range manifest.Params(t.Params) {
			if p.Name == e.Param {
				return p.Description
			}
		}
	}
	return ""
}

// ID identifies an edit by what it changes, and by its value.
func (e *Edit) ID() string {
	example, _ := manifest.Marshal(e.Example)
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Tool, e.Field, e.Param, e.Value, string(example)}, "\x00")))
	return "e" + hex.EncodeToString(sum[:4])
}

// adds reports whether the edit adds to a list; others replace a text.
func (e *Edit) adds() bool {
	switch e.Field {
	case EditBrief, EditStandard, EditFull, EditWhen, EditWhenNot, EditParam:
		return false
	}
	return true
}

// Replaces reports whether an edit takes the place of another one.
func (e *Edit) Replaces(other *Edit) bool {
	return strings.EqualFold(e.Tool, other.Tool) && e.Field == other.Field && e.Param == other.Param &&
		(!e.adds() || e.ID() == other.ID())
}

// Overlay are the edits of one plugin. Applying them changes no byte of it.
type Overlay struct {
	Edits []Edit `json:"edits"`
}

// Apply returns a tool with the edits of the overlay, or the tool itself if there are none for it.
func (o *Overlay) Apply(t *manifest.Tool) *manifest.Tool {
	if t == nil || !slices.ContainsFunc(o.Edits, func(e Edit) bool { return strings.EqualFold(e.Tool, t.Name) }) {
		return t
	}
	edited := *t
	for _, list := range []*[]string{&edited.Aliases, &edited.Keywords, &edited.Tasks, &edited.Needs} {
		*list = slices.Clip(*list)
	}
	for i := range o.Edits {
		if e := &o.Edits[i]; strings.EqualFold(e.Tool, t.Name) {
			e.apply(&edited)
		}
	}
	return &edited
}

func (e *Edit) apply(t *manifest.Tool) {
	switch e.Field {
	case EditBrief:
		t.Docs.Brief = e.Value
	case EditStandard:
		t.Docs.Standard = e.Value
	case EditFull:
		t.Docs.Full = e.Value
	case EditWhen:
		t.When = e.Value
	case EditWhenNot:
		t.WhenNot = e.Value
	case EditAlias:
		t.Aliases = appendNew(t.Aliases, e.Value)
	case EditKeyword:
		t.Keywords = appendNew(t.Keywords, e.Value)
	case EditTask:
		t.Tasks = appendNew(t.Tasks, e.Value)
	case EditNeed:
		t.Needs = appendNew(t.Needs, e.Value)
	case EditExample:
		if e.Example != nil {
			t.Examples = append([]manifest.Example{*e.Example}, t.Examples...)
		}
	case EditParam:
		t.Params = annotate(t.Params, e.Param, "description", func(any) any { return e.Value })
	case EditParamAlias:
		t.Params = annotate(t.Params, e.Param, "x-aliases", addTo(e.Value))
	case EditFrom:
		t.Params = annotate(t.Params, e.Param, "x-from", addTo(e.Value))
	}
}

func appendNew(list []string, value string) []string {
	if slices.Contains(list, value) {
		return list
	}
	return append(list, value)
}

func addTo(value string) func(any) any {
	return func(before any) any {
		list, _ := before.([]any)
		if slices.Contains(list, any(value)) {
			return list
		}
		return append(slices.Clip(list), value)
	}
}

// annotate sets a keyword of a property that no validator reads.
func annotate(params json.RawMessage, name, keyword string, change func(any) any) json.RawMessage {
	root, err := jsontext.Decode(params, jsontext.Limits{Bytes: MaxParams})
	if err != nil {
		return params
	}
	path := []string{"properties", name}
	property, ok := jsontext.Lookup(root, path)
	object, isObject := property.(map[string]any)
	if !ok || !isObject {
		return params
	}
	return jsontext.Set(params, path, keyword, jsontext.Marshal(change(object[keyword])))
}

// values returns the values of a field for a tool.
func (o *Overlay) values(tool, field string) (values []string) {
	for _, e := range o.Edits {
		if e.Field == field && strings.EqualFold(e.Tool, tool) {
			values = append(values, e.Value)
		}
	}
	return values
}

// Merge returns the overlay with further edits, which take the place of those that they replace.
func (o *Overlay) Merge(edits []Edit) *Overlay {
	merged := &Overlay{Edits: slices.Clone(o.Edits)}
	for i := range edits {
		merged.Edits = slices.DeleteFunc(merged.Edits, func(old Edit) bool { return edits[i].Replaces(&old) })
		merged.Edits = append(merged.Edits, edits[i])
	}
	return merged
}

// Overlaid returns a plugin with an overlay, which is loaded when documentation is first read.
func Overlaid(p Provider, load func() (*Overlay, error), segment func() []byte) Provider {
	o := &overlaid{Provider: p, segment: segment}
	o.overlay = sync.OnceValues(load)
	return o
}

// Base returns the plugin below an overlay, or the plugin itself.
func Base(p Provider) Provider {
	if o, ok := p.(*overlaid); ok {
		return o.Provider
	}
	return p
}

// overlaid is a plugin whose documentation has edits. Everything else is the plugin's.
type overlaid struct {
	Provider
	overlay  func() (*Overlay, error)
	segment  func() []byte // the segment with the edits; nil, or a nil result, builds it
	tools    sync.Map      // name -> *manifest.Tool
	manifest struct {
		once sync.Once
		m    *manifest.Manifest
		err  error
	}
}

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

func (p *overlaid) Manifest() (*manifest.Manifest, error) {
	p.manifest.once.Do(func() {
		base, err := p.Provider.Manifest()
		if err != nil {
			p.manifest.err = err
			return
		}
		o, err := p.overlay()
		if err != nil {
			p.manifest.err = err
			return
		}
		m := *base
		m.Tools = slices.Clone(m.Tools)
		for i := range m.Tools {
			m.Tools[i] = *o.Apply(&m.Tools[i])
		}
		p.manifest.m = &m
	})
	return p.manifest.m, p.manifest.err
}

func (p *overlaid) Lines(group string) ([]Line, error) {
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
		for _, brief := range o.values(lines[i].Name, EditBrief) {
			lines[i].Brief = manifest.CleanLine(brief)
		}
	}
	return lines, nil
}

func (p *overlaid) Segment() ([]byte, error) {
	if p.segment != nil {
		if stored := p.segment(); stored != nil && SegmentUsable(stored) == nil {
			return stored, nil
		}
	}
	o, err := p.overlay()
	if err != nil {
		return nil, err
	}
	return OverlaidSegment(p.Provider, o)
}

// OverlaidSegment returns the search segment of a plugin with an overlay.
func OverlaidSegment(p Provider, o *Overlay) ([]byte, error) {
	m, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	var docs []SearchDoc
	if own := p.Features().SearchDocs; own != nil {
		docs = own()
	} else {
		docs = SearchDocs(m)
	}
	for i := range docs {
		o.applyToSearch(&docs[i])
	}
	return BuildSegment(SearchPluginOf(m), docs), nil
}

// applyToSearch adds the edits of a tool to what search indexes of it.
func (o *Overlay) applyToSearch(d *SearchDoc) {
	for i := range o.Edits {
		e := &o.Edits[i]
		if !strings.EqualFold(e.Tool, d.Name) {
			continue
		}
		value := manifest.CleanLine(e.Value)
		switch e.Field {
		case EditBrief:
			d.Brief = value
		case EditStandard, EditFull, EditWhen:
			d.Text += " " + value
		case EditAlias:
			d.Aliases = appendNew(slices.Clip(d.Aliases), value)
		case EditKeyword:
			d.Keywords = appendNew(slices.Clip(d.Keywords), value)
		case EditTask:
			d.Tasks = appendNew(slices.Clip(d.Tasks), value)
		case EditPhrase:
			d.Phrases = appendNew(d.Phrases, value)
		case EditParamAlias:
			d.Params = append(slices.Clip(d.Params), SearchParam{Name: value})
		}
	}
}

func (p *overlaid) Features() Features {
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
		if flow != nil && tier > manifest.Tier1 && len(o.values(t.Name, EditNeed))+len(o.values(t.Name, EditFrom)) > 0 {
			d.SetFlow(o.flow(t, flow(t.Name)))
		}
		if tier == manifest.Tier2 {
			o.dropRare(d, t.Name)
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
			return o.flow(t, flow(tool))
		}
	}
	f.Overlaid = true
	return f
}

// flow adds the edits of a tool to what the plugin says about what comes before it.
func (o *Overlay) flow(t *manifest.Tool, of *manifest.Flow) *manifest.Flow {
	added := manifest.Flow{}
	for _, need := range o.values(t.Name, EditNeed) {
		added.Needs = append(added.Needs, manifest.FlowCall{Tool: need})
	}
	for _, e := range o.Edits {
		from, result, ok := manifest.SplitSource(e.Value)
		if e.Field == EditFrom && ok && strings.EqualFold(e.Tool, t.Name) {
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
func (o *Overlay) dropRare(d *manifest.ToolDocs, tool string) {
	for _, e := range o.Edits {
		if e.Field != EditRare || !strings.EqualFold(e.Tool, tool) {
			continue
		}
		i := slices.IndexFunc(d.Parameters, func(p manifest.Param) bool { return p.Name == e.Param && !p.Required })
		if i >= 0 {
			d.Parameters = slices.Delete(slices.Clone(d.Parameters), i, i+1)
			d.MoreParameters = append(slices.Clip(d.MoreParameters), e.Param)
		}
	}
}

// Overlays is the folder of the operator's overlays: one file for each plugin, NAME@BUILD.json, for one build of it.
type Overlays struct {
	Dir    string
	Notice func(text string) // takes what a person should know; may be nil
}

const (
	overlaySuffix = ".json"
	segmentSuffix = ".segment"
	droppedSuffix = ".dropped"
	maxOverlay    = 16 << 20
)

// buildKey returns the part of a file's name that stands for a build.
func buildKey(i Info) string {
	build := strings.TrimPrefix(i.Build(), "sha256:")
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(build))
	return safe[:min(len(safe), 16)]
}

func (s *Overlays) path(i Info, suffix string) string {
	return filepath.Join(s.Dir, i.Name+"@"+buildKey(i)+suffix)
}

// Wrap returns plugins with their overlays. An overlay of another build is dropped, with a notice: its file gets the
// suffix ".dropped".
func (s *Overlays) Wrap(providers []Provider) []Provider {
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
		i := slices.IndexFunc(wrapped, func(p Provider) bool { return strings.EqualFold(p.Info().Name, plugin) })
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

func (s *Overlays) drop(name string) {
	path := filepath.Join(s.Dir, name)
	if os.Rename(path+overlaySuffix, path+droppedSuffix) != nil {
		return
	}
	_ = os.Remove(path + segmentSuffix)
	if plugin, _, _ := strings.Cut(name, "@"); s.Notice != nil {
		s.Notice(plugin + " is another build than its edits are for (docs list); they are dropped: " + path + droppedSuffix)
	}
}

func (s *Overlays) wrap(p Provider) Provider {
	info := p.Info()
	return Overlaid(p, func() (*Overlay, error) { return s.Load(info) }, func() []byte {
		path := s.path(info, segmentSuffix)
		if ModTime(path).Before(ModTime(s.path(info, overlaySuffix))) { // the file was edited by hand
			return nil
		}
		segment, err := protect.Read(path, maxMerged)
		if err != nil {
			return nil
		}
		return segment
	})
}

// Load returns the overlay of a build. It has no edits if there is none.
func (s *Overlays) Load(i Info) (*Overlay, error) {
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
		return nil, &Error{Code: ConfigError, Message: fmt.Sprintf("the edits of %s cannot be read: %s", i.Name,
			manifest.CleanLine(err.Error())), Cause: err, Next: []string{"correct or remove " + path}}
	}
	return o, nil
}

// OverlayChange replaces the overlay of a plugin.
type OverlayChange struct {
	Provider Provider
	From, To *Overlay // From is the one that was loaded
}

// Save replaces overlays and their search segments: all of them or, with an error, none. Without edits it removes the
// files of a plugin. The error is busy if an overlay is no longer what was loaded.
func (s *Overlays) Save(changes ...OverlayChange) error {
	if err := protect.Dir(s.Dir); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(s.Dir, ".lock"))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Unlock()
	var prepared []func() error
	for _, c := range changes {
		base := Base(c.Provider)
		now, err := s.Load(base.Info())
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(now.Edits, c.From.Edits) {
			return Errorf(Busy, "the edits of %s have changed in the meantime; nothing was written", base.Info().Name)
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
				if undo, failed := s.prepare(Base(c.Provider), c.From); failed != nil || undo() != nil {
					return fmt.Errorf("%w; the edits of %s were written", err, c.Provider.Info().Name)
				}
			}
			return err
		}
	}
	return nil
}

// prepare writes the files of an overlay beside the present ones, and returns what replaces these.
func (s *Overlays) prepare(base Provider, o *Overlay) (write func() error, err error) {
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
	segment, err := OverlaidSegment(base, o)
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
