package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/record/trace"
	"github.com/parley-tools/parley/host/stats/dataset"
	"github.com/parley-tools/parley/host/stats/judge"
	"github.com/parley-tools/parley/host/stats/model"
	"github.com/parley-tools/parley/host/stats/suggest"
	"github.com/parley-tools/parley/manifest"
)

// DatasetOptions say what [ExportDataset] writes.
type DatasetOptions struct {
	Name   string // a plugin, a group or a tool; "" means all
	Since  string // as in TraceFilter
	Out    string // the file
	Values bool   // keep values and searches of callers
	Record string // the recording with verdicts on sessions; "" is the one in the host's state folder
}

// DatasetData says what was written.
type DatasetData struct {
	File string       `json:"file"`
	Card dataset.Card `json:"card"`
}

// ExportDataset writes sessions, queries and edits to a file.
func ExportDataset(_ context.Context, d *Deps, o DatasetOptions) (*DatasetData, error) {
	catalog, err := d.Catalog()
	if err != nil {
		return nil, err
	}
	scope, err := scopeOf(catalog, o.Name)
	if err != nil {
		return nil, err
	}
	records, err := d.records(o.Since)
	if err != nil {
		return nil, err
	}
	verdict, err := d.verdicts(o.Record, catalog)
	if err != nil {
		return nil, err
	}
	list, err := DocsList(d, "")
	if err != nil {
		return nil, err
	}
	var edits []dataset.Edit
	for _, of := range list.Overlays {
		for _, e := range of.Edits {
			edits = append(edits, dataset.Edit{Plugin: of.Plugin, Manifest: of.Manifest, Edit: e.Edit})
		}
	}
	set := dataset.New(dataset.Options{Records: records, Catalog: catalog, Scope: scope, Values: o.Values,
		Shapes:  func(params json.RawMessage) json.RawMessage { return trace.Shapes(params, nil) },
		Verdict: verdict, Edits: edits, Created: time.Now().UTC().Truncate(time.Second)})
	var b bytes.Buffer
	if err := set.Write(&b); err != nil {
		return nil, err
	}
	if err := writeBelow(o.Out, b.Bytes()); err != nil {
		return nil, host.Errorf(host.Unavailable, "cannot write %s: %s", o.Out, manifest.CleanLine(err.Error())).
			WithNext("--out with a file that you can write")
	}
	return &DatasetData{o.Out, set.Card}, nil
}

// verdicts returns a function that looks a verdict up in a recording. No model is asked.
func (d *Deps) verdicts(record string, catalog *host.Catalog) (func(*judge.Session) *judge.Verdict, error) {
	path := d.recordingPath(record)
	recording, err := model.OpenRecording(path, record == "")
	if err != nil {
		return nil, err
	}
	d.remember(recordOption, path)
	s, err := d.Settings()
	if err != nil {
		return nil, err
	}
	client := &model.Client{Recording: recording, Replay: true, Endpoint: &model.Endpoint{Name: s.Model.Name}}
	if replayedModel(client) != nil { // no verdicts, or of several models
		return func(*judge.Session) *judge.Verdict { return nil }, nil
	}
	return func(s *judge.Session) *judge.Verdict {
		answer, ok := client.Recorded(s.Question(catalog))
		if v, err := judge.Parse(answer); ok && err == nil {
			return v
		}
		return nil
	}, nil
}

// maxDataset bounds a dataset, in bytes.
const maxDataset = 256 << 20

// readDataset reads a dataset.
func readDataset(ctx context.Context, path string) (*dataset.Dataset, error) {
	raw, err := host.ReadValue(ctx, path, maxDataset)
	var set *dataset.Dataset
	if err == nil {
		set, err = dataset.Read(bytes.NewReader(raw))
	}
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "%s is not a dataset: %s", path, manifest.CleanLine(err.Error())).
			WithNext("parley docs dataset export --out FILE")
	}
	return set, nil
}

// ImportedData says which edits of a dataset were applied.
type ImportedData struct {
	*ApplyData
	Card    dataset.Card `json:"card"`
	Skipped int          `json:"skipped"` // edits of plugins or builds that are not installed, and those already applied
}

// ImportDataset applies the edits of a dataset that are for installed builds and pass the gate. Its sessions and
// queries change nothing: they are evidence of others, which nothing here can verify.
func ImportDataset(ctx context.Context, d *Deps, path string, o EditOptions) (*ImportedData, error) {
	set, err := readDataset(ctx, path)
	if err != nil {
		return nil, err
	}
	present, err := DocsList(d, "")
	if err != nil {
		return nil, err
	}
	data := &ImportedData{Card: set.Card}
	proposals := map[string][]suggest.Proposal{}
	var order []string
	for _, e := range set.Edits {
		plugin, err := d.sameBuild(e.Plugin, e.Manifest, "it is")
		if err != nil || present.has(plugin, e.ID()) {
			data.Skipped++
			continue
		}
		if proposals[plugin] == nil {
			order = append(order, plugin)
		}
		e.Origin, e.Applied, e.Scores = "dataset", time.Time{}, nil // nothing was measured here
		proposals[plugin] = append(proposals[plugin], suggest.Proposal{Edit: e.Edit})
	}
	data.ApplyData, err = d.applyEdits(ctx, proposals, order, o)
	return data, err
}

// EvalOptions say what [DocsEval] measures.
type EvalOptions struct {
	Dataset string
	Tools   string // a list of MCP in place of the installed plugins; "" means these
	Model   bool   // let the configured model choose tools for the queries
}

// EvalData are the figures of a catalog on a dataset.
type EvalData struct {
	*dataset.Report
	Choices *dataset.Choices `json:"choices,omitempty"`
	Model   *ModelRun        `json:"model,omitempty"`
}

// DocsEval scores a catalog by a dataset.
func DocsEval(ctx context.Context, d *Deps, o EvalOptions, m ModelOptions) (*EvalData, error) {
	set, err := readDataset(ctx, o.Dataset)
	if err != nil {
		return nil, err
	}
	h, err := d.measured(ctx, o.Tools)
	if err != nil {
		return nil, err
	}
	data := &EvalData{Report: set.Evaluate(h)}
	if !o.Model {
		return data, nil
	}
	questions := set.Questions(h)
	if len(questions) == 0 {
		return nil, host.Errorf(host.InvalidArgs, "%s has no queries for a model to choose tools for", o.Dataset).
			WithNext("leave out --model")
	}
	plan := modelPlan{what: "the choice of tools for " + manifest.Plural(len(set.Queries), "query"),
		sends: "the queries of the dataset and lines of documentation", calls: len(questions)}
	for i := range questions {
		plan.tokens += questions[i].Most()
	}
	client, err := d.model(m, plan)
	if err != nil {
		return nil, err
	}
	data.Choices, data.Model = &dataset.Choices{}, &ModelRun{}
	for i, q := range questions {
		m.told(i, len(questions), "choices of the model")
		answer, err := client.Ask(ctx, q)
		if i > 0 && data.Model.stop(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		set.Count(data.Choices, i, answer)
	}
	data.Model.Usage = client.Usage()
	return data, nil
}

// maxToolList bounds a list of tools, in bytes.
const maxToolList = 64 << 20

// measured returns a host, which records nothing, over the installed plugins or over a list of tools.
func (d *Deps) measured(ctx context.Context, list string) (*host.Host, error) {
	catalog, err := d.Catalog()
	if list != "" {
		var raw []byte
		if raw, err = host.ReadValue(ctx, list, maxToolList); err == nil {
			catalog, err = dataset.ToolList(raw)
		}
		if known := (*host.Error)(nil); err != nil && !errors.As(err, &known) {
			err = host.Errorf(host.InvalidArgs, "%s: %s", list, manifest.CleanLine(err.Error())).
				WithNext("parley docs export --format mcp")
		}
	}
	if err != nil {
		return nil, err
	}
	return host.New(host.Config{Catalog: catalog, Policy: host.DenyAll{}})
}
