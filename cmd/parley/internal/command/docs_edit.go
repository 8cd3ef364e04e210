package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/stats"
	"github.com/parley-tools/parley/host/stats/suggest"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

// SuggestOptions say for which tools, and from which traces, [DocsSuggest] proposes edits.
type SuggestOptions struct {
	Name  string // a plugin, a group or a tool; "" means all
	Since string // as in TraceFilter
}

// SuggestData are proposed edits, and batches of calls that many sessions make one by one.
type SuggestData struct {
	Calls       int                  `json:"calls"` // that they are made from
	Sessions    int                  `json:"sessions"`
	Suggestions []suggest.Suggestion `json:"suggestions"`
	Composites  []suggest.Composite  `json:"composites"`
}

// Composite returns the batch with an id.
func (s *SuggestData) Composite(id string) (*suggest.Composite, error) {
	i := slices.IndexFunc(s.Composites, func(c suggest.Composite) bool { return c.ID == id })
	if i < 0 {
		return nil, host.Errorf(host.InvalidArgs, "no sequence of calls has the id %q", manifest.CleanLine(id)).
			WithNext("parley docs suggest")
	}
	return &s.Composites[i], nil
}

// DocsSuggest proposes edits of documentation, by rules over traces.
func DocsSuggest(ctx context.Context, d *Deps, o SuggestOptions) (*SuggestData, error) {
	report, err := Stats(ctx, d, StatsOptions(o))
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	list := suggest.Suggest(report, catalog)
	applied, err := DocsList(d, "")
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s suggest.Suggestion) bool {
		return !stats.InScope(s.Plugin+"."+s.Edit.Tool, o.Name) || applied.has(s.Plugin, s.ID)
	})
	return &SuggestData{report.Calls, report.Sessions, list, suggest.Composites(report, catalog)}, nil
}

// ApplyOptions say which edits [DocsApply] applies.
type ApplyOptions struct {
	// Names are ids of suggestions, or plugins, groups and tools of which all suggestions are applied. None means all.
	Names []string
	// From is a file of edits, as [EditFile], in place of suggestions. "" means none.
	From  string
	Since string // as in TraceFilter
	EditOptions
}

// EditOptions say how edits are applied.
type EditOptions struct {
	DryRun bool // only say what would be applied
	Yes    bool // do not ask; the policy has to allow that
	// Progress gets how many edits of a plugin were checked. It may be nil.
	Progress func(done, total float64, message string)
}

// EditFile is a file of edits of one build of a plugin.
type EditFile struct {
	Plugin   string      `json:"plugin"`
	Manifest string      `json:"manifest"` // the digest of the build, or the version of what is built in
	Edits    []host.Edit `json:"edits"`
}

// ApplyData says which edits were applied and which the gate refused.
type ApplyData struct {
	Applied []AppliedEdit     `json:"applied"`
	Refused []suggest.Refusal `json:"refused"`
	DryRun  bool              `json:"dry_run,omitempty"`
}

// AppliedEdit is an edit of an overlay.
type AppliedEdit struct {
	ID     string `json:"id"`
	Plugin string `json:"plugin"`
	host.Edit
}

// DocsApply puts edits into the operator's overlays, those that pass the gate and that the operator approves.
func DocsApply(ctx context.Context, d *Deps, o ApplyOptions) (*ApplyData, error) {
	proposals, order, err := d.proposals(ctx, o)
	if err != nil {
		return nil, err
	}
	return d.applyEdits(ctx, proposals, order, o.EditOptions)
}

// applyEdits applies edits of plugins, in an order.
func (d *Deps) applyEdits(ctx context.Context, proposals map[string][]suggest.Proposal, order []string,
	o EditOptions) (*ApplyData, error) {
	edits, err := d.newEdits(o)
	if err != nil {
		return nil, err
	}
	for _, plugin := range order {
		if err := edits.check(ctx, plugin, proposals[plugin]); err != nil {
			return nil, err
		}
	}
	return edits.data, edits.write(ctx)
}

// edits are edits of several plugins. First all are checked, then the operator is asked once, then all are written or
// none.
type edits struct {
	d       *Deps
	options EditOptions
	catalog *host.Catalog // with the overlays that were checked
	changes []host.OverlayChange
	data    *ApplyData
}

func (d *Deps) newEdits(o EditOptions) (*edits, error) {
	catalog, err := d.Catalog()
	return &edits{d: d, options: o, catalog: catalog,
		data: &ApplyData{Applied: []AppliedEdit{}, Refused: []suggest.Refusal{}, DryRun: o.DryRun}}, err
}

// overlay returns the overlay of a plugin as it is so far.
func (e *edits) overlay(p host.Provider) (*host.Overlay, error) {
	for _, c := range e.changes {
		if host.Base(c.Provider) == host.Base(p) {
			return c.To, nil
		}
	}
	return e.d.Parley().Overlays().Load(p.Info())
}

// check adds the edits of a plugin that pass the gate.
func (e *edits) check(ctx context.Context, plugin string, proposals []suggest.Proposal) error {
	p, ok := e.catalog.Provider(plugin)
	if !ok {
		_, err := e.catalog.Find(plugin)
		return err
	}
	current, err := e.overlay(p)
	if err != nil {
		return err
	}
	gate := &suggest.Gate{Catalog: e.catalog, Run: e.d.Parley().TryExample, Progress: e.options.Progress}
	checked, refused, err := gate.Check(ctx, p, current, proposals)
	if err != nil {
		return err
	}
	e.data.Refused = append(e.data.Refused, refused...)
	if len(refused) == len(proposals) {
		return nil
	}
	now := time.Now().UTC().Truncate(time.Second)
	for i := range checked.Edits {
		if edit := &checked.Edits[i]; edit.Applied.IsZero() {
			edit.Applied = now
			e.data.Applied = append(e.data.Applied, AppliedEdit{edit.ID(), p.Info().Name, *edit})
		}
	}
	providers := e.catalog.Providers()
	i := slices.Index(providers, p)
	providers[i] = host.Overlaid(host.Base(p), func() (*host.Overlay, error) { return checked, nil }, nil)
	if e.catalog, err = host.NewCatalog(providers...); err != nil {
		return err
	}
	for i, c := range e.changes {
		if host.Base(c.Provider) == host.Base(p) {
			e.changes[i].To = checked
			return nil
		}
	}
	e.changes = append(e.changes, host.OverlayChange{Provider: p, From: current, To: checked})
	return nil
}

// write asks the operator and writes the edits.
func (e *edits) write(ctx context.Context) error {
	if e.options.DryRun || len(e.changes) == 0 {
		return nil
	}
	rules, err := e.d.Policy()
	if err != nil {
		return err
	}
	diff, err := e.diff()
	if err != nil {
		return err
	}
	if err := e.d.approve(ctx, rules, Change{Diff: diff, What: "edits of documentation"}, e.options.Yes); err != nil {
		return err
	}
	return unwritableEdits(e.d.Parley().Overlays().Save(e.changes...))
}

// diff returns what the edits change, as [Change] has it.
func (e *edits) diff() (string, error) {
	var b strings.Builder
	for _, a := range e.data.Applied {
		p, _ := e.catalog.Provider(a.Plugin)
		t, err := host.Base(p).Tool(a.Tool)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&b, manifest.CleanLine(strings.TrimSpace(a.Plugin+"."+a.Tool+" "+a.Field+" "+a.Param)))
		if before := a.Edit.Replaced(t); before != "" {
			fmt.Fprintln(&b, "- "+manifest.CleanLine(before))
		}
		fmt.Fprintln(&b, "+ "+manifest.CleanLine(EditValue(&a.Edit)))
	}
	return b.String(), nil
}

// EditValue returns what an edit writes, as a text.
func EditValue(e *host.Edit) string {
	if e.Example != nil {
		return e.Example.Title + ": " + string(manifest.EscapeJSON(e.Example.Params))
	}
	return e.Value
}

func unwritableEdits(err error) error {
	if err == nil || errors.Is(err, host.Busy) {
		return err
	}
	return &host.Error{Code: host.Unavailable, Message: "cannot write the edits: " + manifest.CleanLine(err.Error()),
		Cause: err, Steps: []host.Step{host.OperatorStep(host.OpDoctor)}}
}

// proposals returns the edits that are to be applied, by plugin, and the plugins in order.
func (d *Deps) proposals(ctx context.Context, o ApplyOptions) (map[string][]suggest.Proposal, []string, error) {
	all := map[string][]suggest.Proposal{}
	var order []string
	add := func(plugin string, p suggest.Proposal) {
		if all[plugin] == nil {
			order = append(order, plugin)
		}
		all[plugin] = append(all[plugin], p)
	}
	if o.From != "" {
		file, err := d.readEdits(ctx, o.From)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range file.Edits {
			// Nothing was measured here, and only a rule may say that it proposed an edit, for it has evidence.
			e.Origin, e.Applied, e.Scores = cmp.Or(e.Origin, "file"), time.Time{}, nil
			if strings.HasPrefix(e.Origin, "rule ") {
				e.Origin = "file"
			}
			add(file.Plugin, suggest.Proposal{Edit: e})
		}
		return all, order, nil
	}
	found, err := DocsSuggest(ctx, d, SuggestOptions{Since: o.Since})
	if err != nil {
		return nil, nil, err
	}
	used := map[string]bool{}
	for _, s := range found.Suggestions {
		wanted := len(o.Names) == 0
		for _, name := range o.Names {
			if strings.EqualFold(name, s.ID) || stats.InScope(s.Plugin+"."+s.Edit.Tool, name) {
				wanted, used[name] = true, true
			}
		}
		if wanted {
			add(s.Plugin, suggest.Proposal{Edit: s.Edit, Sessions: s.Sessions})
		}
	}
	for _, name := range o.Names {
		if !used[name] {
			return nil, nil, host.Errorf(host.NotFound, "no suggestion is for %s, and none has that id",
				manifest.CleanLine(name)).WithNext("parley docs suggest")
		}
	}
	return all, order, nil
}

// maxEdits bounds a file of edits, in bytes.
const maxEdits = 16 << 20

// readEdits reads a file of edits, which has to be for the present build of its plugin.
func (d *Deps) readEdits(ctx context.Context, path string) (*EditFile, error) {
	raw, err := host.ReadValue(ctx, path, maxEdits)
	file := &EditFile{}
	if err == nil {
		err = json.Unmarshal(raw, file)
	}
	if err == nil && (file.Plugin == "" || file.Manifest == "") {
		err = errors.New("plugin or manifest is missing")
	}
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s is not a file of edits: %s", path, manifest.CleanLine(err.Error())).
			WithNext(`{"plugin":"text","manifest":"sha256:..","edits":[{"tool":"hash","field":"task","value":".."}]}`)
	}
	file.Plugin, err = d.sameBuild(file.Plugin, file.Manifest, path+" is")
	return file, err
}

// EditsData are the overlays of the operator.
type EditsData struct {
	Overlays []EditsOf `json:"overlays"`
	Dropped  []string  `json:"dropped"` // files of edits for builds that are gone
}

// EditsOf are the edits of one plugin.
type EditsOf struct {
	Plugin   string        `json:"plugin"`
	Manifest string        `json:"manifest"` // the digest of the build, or the version of what is built in
	Edits    []AppliedEdit `json:"edits"`
}

func (e *EditsData) has(plugin, id string) bool {
	return slices.ContainsFunc(e.Overlays, func(of EditsOf) bool {
		return of.Plugin == plugin && slices.ContainsFunc(of.Edits, func(a AppliedEdit) bool { return a.ID == id })
	})
}

// DocsList returns the edits that are applied, of one plugin or tool, or of all if name is "".
func DocsList(d *Deps, name string) (*EditsData, error) {
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	if name != "" {
		at, err := catalog.Find(name)
		if err != nil {
			return nil, err
		}
		name = at.Name()
	}
	data := &EditsData{Overlays: []EditsOf{}, Dropped: []string{}}
	overlays := d.Parley().Overlays()
	for _, p := range catalog.Providers() {
		if !p.Features().Overlaid {
			continue
		}
		info := p.Info()
		o, err := overlays.Load(info)
		if err != nil {
			return nil, err
		}
		of := EditsOf{Plugin: info.Name, Manifest: info.Build(), Edits: []AppliedEdit{}}
		for _, e := range o.Edits {
			if stats.InScope(info.Name+"."+e.Tool, name) {
				of.Edits = append(of.Edits, AppliedEdit{e.ID(), info.Name, e})
			}
		}
		if len(of.Edits) > 0 {
			data.Overlays = append(data.Overlays, of)
		}
	}
	dropped, err := filepath.Glob(filepath.Join(overlays.Dir, "*.dropped"))
	if err == nil && name == "" {
		data.Dropped = append(data.Dropped, dropped...)
	}
	return data, nil
}

// RevertData says which edits were removed.
type RevertData struct {
	Reverted []AppliedEdit `json:"reverted"`
}

// DocsRevert removes edits by their ids, or those of plugins, groups and tools. all stands for every one.
func DocsRevert(d *Deps, names []string, all bool) (*RevertData, error) {
	list, err := DocsList(d, "")
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	data := &RevertData{Reverted: []AppliedEdit{}}
	used := map[string]bool{}
	var changes []host.OverlayChange
	for _, of := range list.Overlays {
		loaded, kept := &host.Overlay{}, &host.Overlay{}
		for _, e := range of.Edits {
			loaded.Edits = append(loaded.Edits, e.Edit)
			removed := all
			for _, name := range names {
				if strings.EqualFold(name, e.ID) || stats.InScope(of.Plugin+"."+e.Tool, name) {
					removed, used[name] = true, true
				}
			}
			if removed {
				data.Reverted = append(data.Reverted, e)
			} else {
				kept.Edits = append(kept.Edits, e.Edit)
			}
		}
		if p, ok := catalog.Provider(of.Plugin); ok && len(kept.Edits) < len(of.Edits) {
			changes = append(changes, host.OverlayChange{Provider: p, From: loaded, To: kept})
		}
	}
	for _, name := range names {
		if !used[name] {
			return nil, host.Errorf(host.NotFound, "no edit is of %s, and none has that id", manifest.CleanLine(name)).
				WithNext("parley docs list")
		}
	}
	if len(changes) > 0 {
		if err := unwritableEdits(d.Parley().Overlays().Save(changes...)); err != nil {
			return nil, err
		}
	}
	if all {
		return data, d.removeDropped()
	}
	return data, nil
}

// removeDropped removes the files of edits for builds that are gone.
func (d *Deps) removeDropped() error {
	files, err := filepath.Glob(filepath.Join(d.Parley().Overlays().Dir, "*.dropped"))
	for _, path := range files {
		if failed := os.Remove(path); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return unwritableEdits(err)
}

// DiffDocsData is what edits change.
type DiffDocsData struct {
	Edits []EditDiff `json:"edits"`
}

// EditDiff is an edit with the text that it replaces.
type EditDiff struct {
	AppliedEdit
	Before string `json:"before,omitempty"` // "" if it adds something
}

// DocsDiff returns what the edits of a plugin or tool change; name "" means all.
func DocsDiff(d *Deps, name string) (*DiffDocsData, error) {
	list, err := DocsList(d, name)
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	data := &DiffDocsData{Edits: []EditDiff{}}
	for _, of := range list.Overlays {
		p, ok := catalog.Provider(of.Plugin)
		if !ok {
			continue
		}
		for _, e := range of.Edits {
			t, err := host.Base(p).Tool(e.Tool)
			if err != nil {
				return nil, err
			}
			data.Edits = append(data.Edits, EditDiff{e, e.Edit.Replaced(t)})
		}
	}
	return data, nil
}

// PatchOp is an operation of a JSON Patch (RFC 6902).
type PatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// DocsPatch returns the edits of a plugin as a JSON Patch of its manifest, for its author. What the format of manifests
// has no place for is left out. The error is invalid_args for a plugin whose manifest no author writes.
func DocsPatch(d *Deps, plugin string) ([]PatchOp, error) {
	list, err := DocsList(d, plugin)
	if err != nil {
		return nil, err
	}
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	at, err := catalog.Find(plugin)
	if err != nil {
		return nil, err
	}
	m, err := host.Base(at.Provider).Manifest()
	if err != nil {
		return nil, err
	}
	if m.Kind == manifest.KindBuiltin {
		return nil, host.Errorf(host.InvalidArgs, "%s has no manifest that an author writes", at.Plugin).
			WithNext("parley docs diff " + at.Plugin)
	}
	ops := []PatchOp{}
	for _, of := range list.Overlays {
		made := map[string]bool{} // lists that the patch has made
		for _, e := range of.Edits {
			i := slices.IndexFunc(m.Tools, func(t manifest.Tool) bool { return strings.EqualFold(t.Name, e.Tool) })
			if i >= 0 {
				ops = append(ops, patchOps(&m.Tools[i], fmt.Sprintf("/tools/%d", i), &e.Edit, made)...)
			}
		}
	}
	return ops, nil
}

// patchOps returns the operations of one edit. Order is kept by "-", the end of a list.
func patchOps(t *manifest.Tool, at string, e *host.Edit, made map[string]bool) []PatchOp {
	property := at + "/params/properties/" + jsontext.EscapeToken(e.Param)
	text := func(path string) []PatchOp { return []PatchOp{{"add", at + path, e.Value}} } // of a member, add replaces
	list := func(path string, has int, value any) []PatchOp {
		if has == 0 && !made[path] {
			made[path] = true
			return []PatchOp{{"add", path, []any{value}}}
		}
		return []PatchOp{{"add", path + "/-", value}}
	}
	keyword := func(name string) int {
		root, err := jsontext.Decode(t.Params, jsontext.Limits{})
		if err != nil {
			return 0
		}
		v, _ := jsontext.Lookup(root, []string{"properties", e.Param, name})
		items, _ := v.([]any)
		return len(items)
	}
	switch e.Field {
	case host.EditBrief, host.EditStandard, host.EditFull:
		return text("/docs/" + e.Field)
	case host.EditWhen, host.EditWhenNot:
		return text("/" + e.Field)
	case host.EditAlias:
		return list(at+"/aliases", len(t.Aliases), e.Value)
	case host.EditKeyword:
		return list(at+"/keywords", len(t.Keywords), e.Value)
	case host.EditTask, host.EditPhrase:
		return list(at+"/tasks", len(t.Tasks), e.Value)
	case host.EditNeed:
		return list(at+"/needs", len(t.Needs), e.Value)
	case host.EditExample:
		if len(t.Examples) == 0 {
			return list(at+"/examples", 0, e.Example)
		}
		return []PatchOp{{"add", at + "/examples/0", e.Example}}
	case host.EditParam:
		return []PatchOp{{"add", property + "/description", e.Value}}
	case host.EditParamAlias:
		return list(property+"/x-aliases", keyword("x-aliases"), e.Value)
	case host.EditFrom:
		return list(property+"/x-from", keyword("x-from"), e.Value)
	}
	return nil
}
