package learning

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/learn/suggest"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

var docsSuggestCommand = &command.Command[*docsSuggestOptions]{
	Use: "suggest [NAME]", Run: runDocsSuggest, Words: command.CompleteNames,
	Short: "Propose better documentation, by what failed",
	Long: "Uses what schemas refused, and rules over traces; no model is asked. Each suggestion has its evidence: how " +
		"many calls, how\nmany sessions, and some ids. Nothing is changed. NAME is a plugin, a group or a tool. Only calls " +
		"in sessions count. Calls\nthat many sessions make in the same order are offered as a file for parley batch.",
	Example: "parley docs suggest\nparley docs suggest text.hash --since 7d --json\n" +
		"parley docs suggest --batch s1a2b3c4d >login.ndjson",
}

func runDocsSuggest(_ context.Context, app *command.App, opts *docsSuggestOptions) error {
	data, err := docsSuggest(app, opts.statsOptions)
	if err != nil {
		return err
	}
	if opts.Batch != "" {
		return printBatch(app, data, opts.Batch)
	}
	next := []string{"parley stats"}
	if len(data.Suggestions) > 0 {
		next = []string{"parley docs apply " + data.Suggestions[0].ID, "parley docs apply --dry-run"}
	}
	for _, c := range data.Composites {
		next = append(next, "parley docs suggest --batch "+c.ID)
	}
	return app.PrintNext(data, next, func(w io.Writer) {
		for _, s := range data.Suggestions {
			editText(app, w, appliedEdit{s.ID, s.Plugin, s.Edit}, "")
			app.Wrap(w, "    ", "    %s: %s (%s)", manifest.CleanLine(s.Rule), manifest.CleanLine(s.Why),
				command.Either(s.Sessions > 0, manifest.Plural(s.Sessions, "session"), "no call needed"))
		}
		for _, c := range data.Composites {
			fmt.Fprintf(w, "%s  batch %s\n", c.ID, strings.Join(c.Tools, ", "))
			app.Wrap(w, "    ", "    sequence: %s", c.Why)
			fmt.Fprintln(w, "    parley docs suggest --batch "+c.ID)
		}
		fmt.Fprintf(w, "%s from %s in %s\n", manifest.Plural(len(data.Suggestions), "suggestion"),
			manifest.Plural(data.Calls, "call"), manifest.Plural(data.Sessions, "session"))
	})
}

// printBatch prints the calls of a composite and, on stderr, how to run them.
func printBatch(a *command.App, data *suggestData, id string) error {
	i := slices.IndexFunc(data.Composites, func(c suggest.Composite) bool { return c.ID == id })
	if i < 0 {
		return host.Errorf(host.InvalidArgs, "no sequence of calls has the id %q", manifest.CleanValue(id)).
			WithNext("parley docs suggest")
	}
	c := &data.Composites[i]
	for _, line := range c.Lines {
		if _, err := a.Out.Write(append(manifest.EscapeJSON(line), '\n')); err != nil {
			return err
		}
	}
	run := "parley batch FILE"
	for _, p := range c.Parameters {
		fmt.Fprintf(a.Err, "%s: %s %s\n", p.Name, p.Type, manifest.CleanLine(p.Description))
		run += fmt.Sprintf(" --param %s=%s", p.Name, strings.ToUpper(p.Name))
	}
	fmt.Fprintln(a.Err, "Run: "+run)
	if c.Test != nil {
		fmt.Fprintln(a.Err, "Test: parley batch FILE --params "+command.ShellQuote(string(manifest.EscapeJSON(c.Test))))
	}
	return nil
}

// editText prints an edit: what it changes, the text that it replaces, if any, and the new text.
func editText(a *command.App, w io.Writer, e appliedEdit, before string) {
	fmt.Fprintf(w, "%s  %s\n", e.ID, e.text())
	changeText(a, w, before, editValue(&e.Edit))
}

// changeText prints a text before and after a change, as far as they exist.
func changeText(a *command.App, w io.Writer, before, after string) {
	for _, text := range [][2]string{{"  - ", before}, {"  + ", after}} {
		command.PrintIf(w, text[1] != "", "%s\n", command.Wrapped(text[0]+manifest.CleanLine(text[1]), a.Columns(), "    "))
	}
}

var docsApplyCommand = &command.Command[*docsApplyOptions]{
	Use: "apply [NAME...]", Run: runDocsApply, Words: command.CompleteNames,
	Short: "Apply suggestions, or a file of edits",
	Long: "NAME is the id of a suggestion, or a plugin, a group or a tool; without a NAME all suggestions are applied. " +
		"Edits are kept\nbeside the plugin, whose file stays as it is; another build drops them, with a notice. Each " +
		"passes a gate: it breaks\nno further rule of the linter, every tool is still found by its tasks, examples run, " +
		"and no text promises too much\nor repeats another. A person approves the changes: all are written, or none.",
	Example: "parley docs apply --dry-run\nparley docs apply text.hash\nparley docs apply --from edits.json",
}

// runDocsApply adds to the operator's overlays those edits that pass the gate and that the operator approves.
func runDocsApply(ctx context.Context, app *command.App, opts *docsApplyOptions) error {
	if opts.From != "" && len(opts.Names) > 0 {
		return host.Errorf(host.InvalidArgs, "--from applies the edits of a file; it takes no names").
			WithNext("parley docs apply --from " + command.ShellQuote(opts.From))
	}
	proposals, err := proposals(ctx, app, opts)
	if err != nil {
		return err
	}
	opts.whole = opts.From != ""
	data, err := applyEdits(ctx, app, proposals, opts.editOptions)
	if err != nil {
		return err
	}
	next := command.Either(opts.DryRun || len(data.Applied) == 0, "parley docs suggest", "parley docs diff")
	return app.Print(data, []string{next}, func(w io.Writer) { applyText(app, w, data) })
}

// applyText prints what was applied, and what the gate refused.
func applyText(a *command.App, w io.Writer, data *applyData) {
	for _, e := range data.Applied {
		editText(a, w, e, "")
	}
	for _, r := range data.Refused {
		a.Wrap(w, "  ", "%s", refusalText(r))
	}
	editsText(w, len(data.Applied), data.DryRun, fmt.Sprintf(", %d refused", len(data.Refused)))
}

// editsText prints how many edits were applied.
func editsText(w io.Writer, n int, dryRun bool, more string) {
	verb := command.Either(dryRun, "would be applied", "applied")
	fmt.Fprintf(w, "%s %s%s\n", manifest.Plural(n, "edit"), verb, more)
}

type docsDiffOptions struct {
	Name  string `word:""`
	Patch bool   `flag:"patch" usage:"print a JSON Patch of the plugin's manifest"`
}

var docsDiffCommand = &command.Command[*docsDiffOptions]{
	Use: "diff [NAME]", Run: runDocsDiff, Words: command.CompleteNames,
	Short: "Show what applied edits change",
	Long: "NAME is a plugin, a group or a tool. --patch prints a JSON Patch (RFC 6902) of the manifest of a plugin, " +
		"for its author.",
	Example: "parley docs diff\nparley docs diff text --patch",
}

// runDocsDiff prints the changes by the edits of a plugin or tool. Without a name it prints all.
func runDocsDiff(_ context.Context, app *command.App, opts *docsDiffOptions) error {
	if opts.Patch && opts.Name == "" {
		return host.Errorf(host.InvalidArgs, "--patch prints a patch for one plugin; name it").
			WithNext("parley docs diff text --patch")
	}
	if opts.Patch {
		return printPatch(app, opts.Name)
	}
	list, err := docsList(app, opts.Name)
	if err != nil {
		return err
	}
	data := struct {
		Edits []editDiff `json:"edits"`
	}{[]editDiff{}}
	for _, of := range list.Overlays {
		for _, e := range of.Edits {
			t, err := host.Base(of.provider).Tool(e.Tool)
			if err != nil {
				return err
			}
			data.Edits = append(data.Edits, editDiff{e, e.Edit.Replaced(t)})
		}
	}
	return app.Print(data, []string{"parley docs list"}, func(w io.Writer) {
		for _, e := range data.Edits {
			editText(app, w, e.appliedEdit, e.Before)
		}
		fmt.Fprintln(w, manifest.Plural(len(data.Edits), "edit"))
	})
}

func runDocsList(_ context.Context, app *command.App, name string) error {
	data, err := docsList(app, name)
	if err != nil {
		return err
	}
	next := command.Either(len(data.Overlays) > 0, []string{"parley docs diff", "parley docs revert --all"},
		[]string{"parley docs suggest"})
	return app.Print(data, next, func(w io.Writer) {
		for _, of := range data.Overlays {
			fmt.Fprintf(w, "%s, build %s\n", of.Plugin, manifest.Clip(of.Manifest, 24))
			for _, e := range of.Edits {
				fmt.Fprintf(w, "  %s  %s  %-28s %s\n", e.ID, e.Applied.Format("2006-01-02"),
					manifest.CleanLine(e.Tool+" "+e.Field), manifest.CleanLine(e.Origin)+scoresText(e.Scores))
			}
		}
		command.WriteLines(w, "dropped, for a build that is gone: ", data.Dropped)
		command.PrintIf(w, len(data.Overlays)+len(data.Dropped) == 0, "no edits\n")
	})
}

// scoresText returns the measured scores of an edit, or "" if it was not measured.
func scoresText(s *overlay.Scores) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(", score %.3f, before %.3f", s.After, s.Before)
}

type docsRevertOptions struct {
	Names []string `word:""`
	All   bool     `flag:"all" usage:"remove all edits, and the files of dropped edits"`
}

var docsRevertCommand = &command.Command[*docsRevertOptions]{
	Use: "revert NAME...", Run: runDocsRevert, Words: command.CompleteNames, AnyWords: true,
	Short:   "Remove applied edits",
	Long:    "NAME is the id of an edit, or a plugin, a group or a tool.",
	Example: "parley docs revert text\nparley docs revert --all",
}

// runDocsRevert removes edits by their ids, or by plugins, groups and tools. all means every edit.
func runDocsRevert(_ context.Context, app *command.App, opts *docsRevertOptions) error {
	if opts.All == (len(opts.Names) > 0) {
		return host.Errorf(host.InvalidArgs, "parley docs revert takes either names or --all").WithNext("parley docs list")
	}
	list, err := docsList(app, "")
	if err != nil {
		return err
	}
	data := struct {
		Reverted []appliedEdit `json:"reverted"`
	}{[]appliedEdit{}}
	chosen := choice{names: opts.Names}
	var changes []overlay.Change
	for _, of := range list.Overlays {
		loaded, kept := &overlay.Overlay{}, &overlay.Overlay{}
		for _, e := range of.Edits {
			loaded.Edits = append(loaded.Edits, e.Edit)
			if chosen.has(e.ID, of.Plugin+"."+e.Tool) {
				data.Reverted = append(data.Reverted, e)
			} else {
				kept.Edits = append(kept.Edits, e.Edit)
			}
		}
		if len(kept.Edits) < len(of.Edits) {
			changes = append(changes, overlay.Change{Provider: of.provider, From: loaded, To: kept})
		}
	}
	if name := chosen.unused(); name != "" {
		return host.Errorf(host.NotFound, "no edit is for %s, and none has that id", name).WithNext("parley docs list")
	}
	if len(changes) > 0 {
		if err := unwritableEdits(app.Parley().Overlays().Save(changes...)); err != nil {
			return err
		}
	}
	if opts.All {
		for _, path := range list.Dropped {
			if failed := os.Remove(path); !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
		}
		if err != nil {
			return unwritableEdits(err)
		}
	}
	return app.Print(data, []string{"parley docs list"}, func(w io.Writer) {
		for _, e := range data.Reverted {
			editText(app, w, e, "")
		}
		fmt.Fprintf(w, "%s removed\n", manifest.Plural(len(data.Reverted), "edit"))
	})
}

// docsSuggestOptions select the tools and the traces for which [docsSuggest] proposes edits.
type docsSuggestOptions struct {
	Batch string `flag:"batch" usage:"print the calls of this sequence as lines for parley batch"`
	statsOptions
}

// suggestData has proposed edits, and batches of calls that many sessions make one by one.
type suggestData struct {
	Calls       int                  `json:"calls"` // number of calls that they are derived from
	Sessions    int                  `json:"sessions"`
	Suggestions []suggest.Suggestion `json:"suggestions"`
	Composites  []suggest.Composite  `json:"composites"`
}

// docsSuggest proposes edits of documentation, by rules over traces.
func docsSuggest(app *command.App, o statsOptions) (*suggestData, error) {
	catalog, report, err := computeStats(app, o)
	if err != nil {
		return nil, err
	}
	applied, err := docsList(app, "")
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(suggest.Suggest(report, catalog), func(s suggest.Suggestion) bool {
		return !stats.InScope(s.Plugin+"."+s.Edit.Tool, o.Name) || applied.has(s.Plugin, s.ID)
	})
	return &suggestData{report.Calls, report.Sessions, list, suggest.Composites(report, catalog)}, nil
}

// docsApplyOptions select the edits that [runDocsApply] applies, and say how.
type docsApplyOptions struct {
	// Names are ids of suggestions, or plugins, groups and tools, whose suggestions are all applied. None means all.
	Names []string `word:""`
	// From is a file of edits, in the form of [editFile], in place of suggestions. "" means none.
	From  string `flag:"from" usage:"apply the edits in FILE, made for this build of a plugin"`
	Since string `flag:"since" usage:"suggest only by records since: 24h, 7d, 2026-11-21"`
	editOptions
}

// editOptions say how edits are applied.
type editOptions struct {
	DryRun bool `flag:"dry-run" usage:"show what would be applied, and change nothing"`
	command.Approval
	whole bool // if the gate refuses one edit, none is applied
}

// modelEditOptions are the options of a command that applies proposals of a model.
type modelEditOptions struct {
	DryRun bool `flag:"dry-run" usage:"show what would be applied, and change nothing"`
	modelOptions
}

// editFile is a file of edits for one build of a plugin.
type editFile struct {
	build
	Edits []overlay.Edit `json:"edits"`
}

// build identifies a build of a plugin.
type build struct {
	Plugin   string `json:"plugin"`
	Manifest string `json:"manifest"` // the digest of the build, or the version of a built-in plugin
}

// parsed returns the error of parsing a file about a build, or an error if the file does not name the build.
func (b *build) parsed(err error) error {
	if err == nil && (b.Plugin == "" || b.Manifest == "") {
		return errors.New("plugin or manifest is missing")
	}
	return err
}

// find checks that the build is the present one, and sets Plugin to the plugin's exact name. what is the beginning of
// the error message.
func (b *build) find(app *command.App, what string) error {
	at, err := app.Plugin(b.Plugin)
	if err != nil {
		return err
	}
	if now := at.Provider.Info().Build(); now != b.Manifest {
		return host.Errorf(host.Integrity, "%s for another build of %s: %s, and this is %s", what, at.Plugin,
			manifest.CleanLine(b.Manifest), now).WithNext("parley docs list --json")
	}
	b.Plugin = at.Plugin
	return nil
}

// applyData says which edits were applied and which the gate refused.
type applyData struct {
	Applied []appliedEdit     `json:"applied"`
	Refused []suggest.Refusal `json:"refused"`
	DryRun  bool              `json:"dry_run,omitempty"`
}

// appliedEdit is an edit of an overlay.
type appliedEdit struct {
	ID     string `json:"id"`
	Plugin string `json:"plugin"`
	overlay.Edit
}

// text returns one line that says what the edit changes.
func (e *appliedEdit) text() string {
	return manifest.CleanLine(strings.TrimSpace(e.Plugin + "." + e.Tool + " " + e.Field + " " + e.Param))
}

// proposed has proposals of edits by plugin, in the order in which they are checked.
type proposed []struct {
	plugin string
	edits  []suggest.Proposal
}

func (p *proposed) add(plugin string, edit suggest.Proposal) {
	for i := range *p {
		if of := &(*p)[i]; of.plugin == plugin {
			of.edits = append(of.edits, edit)
			return
		}
	}
	*p = append(*p, proposed{{plugin, []suggest.Proposal{edit}}}...)
}

// applyEdits applies those edits of plugins that pass the gate.
func applyEdits(ctx context.Context, app *command.App, proposals proposed, o editOptions) (*applyData, error) {
	edits, err := newEdits(app, o.DryRun)
	for _, of := range proposals {
		if err == nil {
			err = edits.check(ctx, of.plugin, of.edits)
		}
	}
	if err != nil {
		return nil, err
	}
	if data := edits.data; o.whole && !o.DryRun && len(data.Refused) > 0 {
		var b strings.Builder
		fmt.Fprintf(&b, "no edit was applied: %d of %d were refused", len(data.Refused), len(data.Refused)+len(data.Applied))
		for _, r := range data.Refused {
			b.WriteString("\n" + refusalText(r))
		}
		return nil, host.Errorf(host.InvalidArgs, "%s", b.String()).WithNext("parley docs list")
	}
	return edits.data, edits.write(ctx, o.Yes)
}

// refusalText returns one line that says which edit the gate refused, and why.
func refusalText(r suggest.Refusal) string {
	what := strings.TrimSpace(r.Edit.Tool + " " + r.Edit.Field + " " + r.Edit.Param)
	return manifest.CleanLine("refused: " + what + ": " + r.Why)
}

// edits are edits of several plugins. First all are checked, then the operator is asked once, then either all are
// written or none.
type edits struct {
	d       *command.App
	catalog *host.Catalog // with the overlays that were checked
	changes []overlay.Change
	data    *applyData
}

func newEdits(app *command.App, dryRun bool) (*edits, error) {
	catalog, err := app.Catalog()
	return &edits{d: app, catalog: catalog,
		data: &applyData{Applied: []appliedEdit{}, Refused: []suggest.Refusal{}, DryRun: dryRun}}, err
}

// change returns the change of a plugin's overlay, or nil if there is none yet.
func (e *edits) change(p host.Provider) *overlay.Change {
	i := slices.IndexFunc(e.changes, func(c overlay.Change) bool { return host.Base(c.Provider) == host.Base(p) })
	if i < 0 {
		return nil
	}
	return &e.changes[i]
}

// overlay returns the overlay of a plugin, including its changes so far.
func (e *edits) overlay(p host.Provider) (*overlay.Overlay, error) {
	if c := e.change(p); c != nil {
		return c.To, nil
	}
	return e.d.Parley().Overlays().Load(p.Info())
}

// check adds those edits of a plugin that pass the gate.
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
	gate := &suggest.Gate{Catalog: e.catalog, Run: e.d.Parley().TryExample, Progress: e.d.Progress()}
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
			e.data.Applied = append(e.data.Applied, appliedEdit{edit.ID(), p.Info().Name, *edit})
		}
	}
	e.catalog = suggest.Edited(e.catalog, p, checked)
	if c := e.change(p); c != nil {
		c.To = checked
	} else {
		e.changes = append(e.changes, overlay.Change{Provider: p, From: current, To: checked})
	}
	return nil
}

// write asks the operator and writes the edits.
func (e *edits) write(ctx context.Context, yes bool) error {
	if e.data.DryRun || len(e.changes) == 0 {
		return nil
	}
	if err := e.d.Approve(ctx, command.Change{Diff: e.diff(), What: "edits of documentation"}, yes); err != nil {
		return err
	}
	return unwritableEdits(e.d.Parley().Overlays().Save(e.changes...))
}

// diff returns the changes by the edits, in the form of [command.Change].
func (e *edits) diff() string {
	var b strings.Builder
	for _, a := range e.data.Applied {
		p, _ := e.catalog.Provider(a.Plugin)
		t, _ := host.Base(p).Tool(a.Tool) // the gate has read it
		fmt.Fprintln(&b, a.text())
		if before := a.Edit.Replaced(t); before != "" {
			fmt.Fprintln(&b, "- "+manifest.CleanLine(before))
		}
		fmt.Fprintln(&b, "+ "+manifest.CleanLine(editValue(&a.Edit)))
	}
	return b.String()
}

// editValue returns what an edit writes, as text.
func editValue(e *overlay.Edit) string {
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
		Cause: err, Steps: []step.Step{step.Operator(step.OpDoctor)}}
}

// proposals returns the edits to apply.
func proposals(ctx context.Context, app *command.App, o *docsApplyOptions) (all proposed, err error) {
	if o.From != "" {
		file, err := readEdits(ctx, app, o.From)
		if err != nil {
			return nil, err
		}
		for _, e := range file.Edits {
			// Nothing was measured here, and only a rule may claim that it proposed an edit, because a rule has evidence.
			e.Origin, e.Applied, e.Scores = cmp.Or(e.Origin, "file"), time.Time{}, nil
			if strings.HasPrefix(e.Origin, "rule ") || e.Origin == overlay.FromSchema {
				e.Origin = "file"
			}
			all.add(file.Plugin, suggest.Proposal{Edit: e})
		}
		return all, nil
	}
	found, err := docsSuggest(app, statsOptions{Since: o.Since})
	if err != nil {
		return nil, err
	}
	chosen := choice{names: o.Names}
	for _, s := range found.Suggestions {
		if chosen.has(s.ID, s.Plugin+"."+s.Edit.Tool) {
			all.add(s.Plugin, suggest.Proposal{Edit: s.Edit, Sessions: s.Sessions})
		}
	}
	if name := chosen.unused(); name != "" {
		return nil, host.Errorf(host.NotFound, "no suggestion is for %s, and none has that id", name).
			WithNext("parley docs suggest")
	}
	return all, nil
}

// choice selects edits by their ids, or by plugins, groups and tools. Without names it selects all.
type choice struct {
	names []string
	used  []string // the names that selected something
}

func (c *choice) has(id, tool string) bool {
	found := len(c.names) == 0
	for _, name := range c.names {
		if strings.EqualFold(name, id) || stats.InScope(tool, name) {
			found, c.used = true, append(c.used, name)
		}
	}
	return found
}

// unused returns the first name that selected nothing, cleaned, or "" if there is none.
func (c *choice) unused() string {
	for _, name := range c.names {
		if !slices.Contains(c.used, name) {
			return manifest.CleanLine(name)
		}
	}
	return ""
}

// maxEdits bounds a file of edits, in bytes.
const maxEdits = 16 << 20

// readEdits reads a file of edits. The file must be for the present build of its plugin.
func readEdits(ctx context.Context, app *command.App, path string) (*editFile, error) {
	raw, err := command.ReadValue(ctx, path, maxEdits)
	file := &editFile{}
	if err == nil {
		err = file.parsed(json.Unmarshal(raw, file))
	}
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		err = fmt.Errorf("%s must not be %s", cmp.Or(wrong.Field, "it"), wrong.Value)
	}
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s is not a file of edits: %s", path, manifest.CleanLine(err.Error())).
			WithNext(`{"plugin":"text","manifest":"sha256:..","edits":[{"tool":"hash","field":"task","value":".."}]}`)
	}
	return file, file.find(app, path+" is")
}

// editsData are the overlays of the operator.
type editsData struct {
	Overlays []editsOf `json:"overlays"`
	Dropped  []string  `json:"dropped"` // files of edits for builds that are gone
}

// editsOf are the edits of one plugin.
type editsOf struct {
	build
	Edits []appliedEdit `json:"edits"`

	provider host.Provider
}

func (e *editsData) has(plugin, id string) bool {
	return slices.ContainsFunc(e.Overlays, func(of editsOf) bool {
		return of.Plugin == plugin && slices.ContainsFunc(of.Edits, func(a appliedEdit) bool { return a.ID == id })
	})
}

// docsList returns the applied edits of one plugin or tool, or all if name is "".
func docsList(app *command.App, name string) (*editsData, error) {
	catalog, err := app.Catalog()
	if err != nil {
		return nil, err
	}
	if name, err = scopeOf(catalog, name); err != nil {
		return nil, err
	}
	data := &editsData{Overlays: []editsOf{}, Dropped: []string{}}
	overlays := app.Parley().Overlays()
	for _, p := range catalog.Providers() {
		if !p.Features().Overlaid {
			continue
		}
		info := p.Info()
		o, err := overlays.Load(info)
		if err != nil {
			return nil, err
		}
		of := editsOf{build: build{info.Name, info.Build()}, Edits: []appliedEdit{}, provider: p}
		for _, e := range o.Edits {
			if stats.InScope(info.Name+"."+e.Tool, name) {
				of.Edits = append(of.Edits, appliedEdit{e.ID(), info.Name, e})
			}
		}
		if len(of.Edits) > 0 {
			data.Overlays = append(data.Overlays, of)
		}
	}
	if name == "" {
		dropped, _ := filepath.Glob(filepath.Join(overlays.Dir, "*.dropped"))
		data.Dropped = append(data.Dropped, dropped...)
	}
	return data, nil
}

// editDiff is an edit together with the text that it replaces.
type editDiff struct {
	appliedEdit
	Before string `json:"before,omitempty"` // "" if it adds something
}

// patchOp is an operation of a JSON Patch (RFC 6902).
type patchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// printPatch prints the edits of a plugin as a JSON Patch of its manifest, for its author. It leaves out edits that
// the format of manifests cannot express. The error is invalid_args for a plugin whose manifest no author writes.
func printPatch(app *command.App, plugin string) error {
	list, err := docsList(app, plugin)
	at, failed := app.Find(plugin)
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	m, err := host.WholeManifest(host.Base(at.Provider))
	if err != nil {
		return err
	}
	if m.Kind == manifest.KindBuiltin {
		return host.Errorf(host.InvalidArgs, "%s is built in and has no manifest to patch", at.Plugin).
			WithNext("parley docs diff " + at.Plugin)
	}
	ops := []patchOp{}
	for _, of := range list.Overlays {
		made := map[string]bool{} // lists that the patch has created
		for _, e := range of.Edits {
			i := slices.IndexFunc(m.Tools, func(t manifest.Tool) bool { return strings.EqualFold(t.Name, e.Tool) })
			if i >= 0 {
				ops = append(ops, patchOps(&m.Tools[i], fmt.Sprintf("/tools/%d", i), &e.Edit, made)...)
			}
		}
	}
	return app.PrintDocument(ops)
}

// patchPlaces maps edits to the part of a manifest's tool that they write; "/-" is the end of a list.
var patchPlaces = map[string]string{
	overlay.Brief: "docs/brief", overlay.Standard: "docs/standard", overlay.Full: "docs/full",
	overlay.When: "when", overlay.WhenNot: "when_not", overlay.Deprecated: "deprecated/message",
	overlay.Alias: "aliases/-", overlay.Keyword: "keywords/-", overlay.Task: "tasks/-", overlay.Phrase: "tasks/-",
	overlay.Need: "needs/-", overlay.Example: "examples/-", overlay.Param: "params/properties/PARAM/description",
	overlay.ParamAlias: "params/properties/PARAM/x-aliases/-", overlay.From: "params/properties/PARAM/x-from/-",
}

// patchOps returns the operation of one edit, if the format can express it. For an existing member, the operation add
// replaces the value.
func patchOps(t *manifest.Tool, at string, e *overlay.Edit, made map[string]bool) []patchOp {
	place := patchPlaces[e.Field]
	if place == "" {
		return nil
	}
	place, isList := strings.CutSuffix(strings.Replace(place, "PARAM", jsontext.EscapeToken(e.Param), 1), "/-")
	path, value := at+"/"+place, any(e.Value)
	if e.Example != nil {
		value = e.Example
	}
	raw, _ := manifest.Marshal(t)
	tool, _ := jsontext.Decode(raw, jsontext.Limits{})
	steps, _ := jsontext.SplitPointer("/" + place)
	found, _ := jsontext.Lookup(tool, steps)
	switch present, _ := found.([]any); {
	case e.Field == overlay.Deprecated && t.Deprecated != nil && t.Deprecated.Use != "":
		return []patchOp{{"add", path, value}, {"remove", at + "/deprecated/use", nil}}
	case e.Place(t) >= 0:
		return []patchOp{{"replace", fmt.Sprintf("%s/%d", path, e.Place(t)), value}}
	case e.Field == overlay.Example && len(present) > 0:
		path += "/0"
	case isList && len(present) == 0 && !made[path]:
		made[path], value = true, []any{value}
	case isList:
		path += "/-"
	}
	return []patchOp{{"add", path, value}}
}
