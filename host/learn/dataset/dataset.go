// Package dataset writes what was learned from use as a file that others can read and measure with: sessions with
// their calls and outcomes, queries with the tools that serve them, and edits with their scores. The first line is a
// card that says what the file has. Without values, a file has only the names of the arguments that callers wrote,
// with the shapes of their values.
package dataset

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/learn/eval"
	"github.com/parley-tools/parley/host/learn/judge"
	"github.com/parley-tools/parley/host/learn/stats"
	"github.com/parley-tools/parley/host/overlay"
	"github.com/parley-tools/parley/internal/lists"
	"github.com/parley-tools/parley/manifest"
)

// Format names the form of a file.
const Format = "parley-dataset/1"

// Dataset is the content of a file.
type Dataset struct {
	Card     Card
	Sessions []Session
	Queries  []eval.Query
	Edits    []Edit
}

// Card says what a file has. It is its first line, as {"card":{..}}; each other line is {"session":{..}},
// {"query":{..}} or {"edit":{..}}.
type Card struct {
	Format    string            `json:"format"`
	Created   time.Time         `json:"created,omitzero"`
	Plugins   map[string]string `json:"plugins"` // build of each plugin that occurs
	Sessions  int               `json:"sessions"`
	Calls     int               `json:"calls"`
	Queries   int               `json:"queries"`
	Edits     int               `json:"edits"`
	Values    bool              `json:"values"` // callers' values and queries are in it
	Redaction string            `json:"redaction"`
}

// Session is what was done in a session.
type Session struct {
	Query       string         `json:"user_query"` // its first search; "" without values
	Calls       []Call         `json:"tool_calls"`
	Iterations  int            `json:"iteration_count"`   // searches, descriptions and calls
	DurationMS  float64        `json:"total_duration_ms"` // from the first record to the last
	LatencyMS   float64        `json:"latency_ms"`        // sum of all calls
	Errors      int            `json:"error_count"`
	SuccessRate float64        `json:"success_rate"`
	Successful  bool           `json:"is_successful"` // by exit codes, and by the verdict if there is one
	Score       *float64       `json:"score"`         // score of the verdict; nil if no model has judged the session
	Verdict     *judge.Verdict `json:"task_success_evaluation"`
}

// Call is a call of a session.
type Call struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Arguments   json.RawMessage  `json:"arguments,omitempty"` // values, or their shapes
	Shapes      bool             `json:"shapes,omitempty"`    // Arguments are shapes
	Code        string           `json:"code"`
	ExitCode    int              `json:"exit_code"`
	Errors      []host.Violation `json:"errors,omitempty"`
}

// Edit is an edit of one build of a plugin.
type Edit struct {
	Plugin   string `json:"plugin"`
	Manifest string `json:"manifest"`
	overlay.Edit
}

// Options say what a file is made of.
type Options struct {
	Records []host.Record
	Catalog *host.Catalog
	Scope   string // a plugin, a group or a tool; "" means all
	Values  bool   // keep the values and queries of callers, as far as traces have them
	// Shapes returns the shapes of values.
	Shapes func(json.RawMessage) json.RawMessage
	// Verdict returns the judge's verdict on a session, or nil if the session was not judged.
	Verdict func(*judge.Session) *judge.Verdict
	Edits   []Edit
	Created time.Time
}

const (
	redacted   = "sessions, callers and calls have no names; arguments have shapes for values; no searches of callers"
	unredacted = "sessions, callers and calls have no names; arguments and searches are those of callers, without secrets"
)

// New makes a dataset.
func New(o Options) *Dataset {
	d := &Dataset{Card: Card{Format: Format, Created: o.Created, Plugins: map[string]string{}, Values: o.Values,
		Redaction: redacted}}
	if o.Values {
		d.Card.Redaction = unredacted
	}
	inScope := func(r *host.Record) bool { return r.Op == "" && stats.InScope(r.Tool, o.Scope) }
	d.Sessions = lists.Map(lists.Filter(judge.Sessions(o.Records), func(s *judge.Session) bool {
		return slices.ContainsFunc(s.Records, inScope)
	}), o.session)
	for _, s := range d.Sessions {
		d.Card.Calls += len(s.Calls)
		for _, c := range s.Calls {
			d.Card.addBuild(o.Catalog, c.Name)
		}
	}
	d.addQueries(&o)
	d.Edits = lists.Filter(o.Edits, func(e Edit) bool { return stats.InScope(e.Plugin+"."+e.Tool, o.Scope) })
	d.Card.Sessions, d.Card.Queries, d.Card.Edits = len(d.Sessions), len(d.Queries), len(d.Edits)
	return d
}

// session returns what a session did.
func (o *Options) session(s *judge.Session) Session {
	first, last := s.Records[0], s.Records[len(s.Records)-1]
	out := Session{Calls: []Call{}, Iterations: len(s.Records), Successful: s.CodesPass(),
		DurationMS: float64(last.Time.Sub(first.Time).Milliseconds())}
	for _, r := range s.Records {
		if r.Op != "" {
			if out.Query == "" && o.Values {
				out.Query = r.Query
			}
			continue
		}
		c := Call{Name: r.Tool, Arguments: r.Params, Shapes: stats.AreShapes(r.Params), Code: r.Code, ExitCode: r.ExitCode,
			Errors: r.Errors}
		if !o.Values && !c.Shapes && len(r.Params) > 0 {
			c.Arguments, c.Shapes = o.Shapes(r.Params), true
		}
		if at, ok := stats.Find(o.Catalog, r.Tool); ok {
			c.Description = manifest.CleanLine(at.Tool.Docs.Brief)
		} else if !o.Values {
			c.Name = "unknown" // a name that a caller made up
		}
		out.LatencyMS += r.MS
		if r.ExitCode != 0 {
			out.Errors++
		}
		out.Calls = append(out.Calls, c)
	}
	out.SuccessRate = 1 - float64(out.Errors)/float64(len(out.Calls))
	if v := o.Verdict(s); v != nil {
		score := v.Score
		out.Score, out.Successful = &score, out.Successful && v.Passed
		if out.Verdict = v; !o.Values { // a model may repeat what it saw
			out.Verdict = &judge.Verdict{Score: v.Score, Passed: v.Passed, Confidence: v.Confidence}
		}
	}
	return out
}

// addBuild adds the build of a tool's plugin.
func (c *Card) addBuild(catalog *host.Catalog, tool string) {
	plugin, _, _ := strings.Cut(tool, ".")
	if p, ok := catalog.Provider(plugin); ok {
		c.Plugins[p.Info().Name] = p.Info().Build()
	}
}

// addQueries adds the tasks of authors of the plugins that were called and, with values, the searches that a successful
// call followed.
func (d *Dataset) addQueries(o *Options) {
	seen := map[string]bool{}
	add := func(kind, text, tool string) {
		text = manifest.CleanLine(text)
		if key := text + "\x00" + tool; text != "" && !seen[key] && stats.InScope(tool, o.Scope) {
			seen[key] = true
			d.Queries = append(d.Queries, eval.Query{Query: text, Kind: kind, Relevant: map[string]float64{tool: 3}})
			d.Card.addBuild(o.Catalog, tool)
		}
	}
	called := maps.Clone(d.Card.Plugins)
	scope, _, _ := strings.Cut(o.Scope, ".")
	for tool, task := range stats.Tasks(o.Catalog) {
		plugin, _, _ := strings.Cut(tool, ".")
		if _, ok := called[plugin]; ok || strings.EqualFold(plugin, scope) {
			add("author", task, tool)
		}
	}
	if o.Values {
		for _, f := range stats.FollowedSearches(o.Records) {
			add("caller", f.Query, f.Tool)
		}
	}
}

// line is a line of a file: one of its members.
type line struct {
	Card    *Card       `json:"card,omitempty"`
	Session *Session    `json:"session,omitempty"`
	Query   *eval.Query `json:"query,omitempty"`
	Edit    *Edit       `json:"edit,omitempty"`
}

// Write writes a dataset.
func (d *Dataset) Write(w io.Writer) error {
	lines := []line{{Card: &d.Card}}
	lines = append(lines, lists.Map(d.Sessions, func(s Session) line { return line{Session: &s} })...)
	lines = append(lines, lists.Map(d.Queries, func(q eval.Query) line { return line{Query: &q} })...)
	lines = append(lines, lists.Map(d.Edits, func(e Edit) line { return line{Edit: &e} })...)
	for _, l := range lines {
		raw, err := manifest.Marshal(l)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(raw, '\n')); err != nil {
			return err
		}
	}
	return nil
}

const maxLine = 4 << 20 // bytes

// Read reads a dataset. It fails at the first line that is not in this format, and if the card's counts differ from
// the lines of the file.
func Read(r io.Reader) (*Dataset, error) {
	d := &Dataset{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
				err = fmt.Errorf("%s has another type: it is a JSON %s", cmp.Or(kind.Field, "the line"), kind.Value)
			}
			return nil, fmt.Errorf("line %d: %s", n, manifest.CleanLine(err.Error()))
		}
		switch {
		case l.Card != nil && d.Card.Format == "" && l.Card.Format == Format:
			d.Card = *l.Card
		case d.Card.Format == "":
			return nil, fmt.Errorf(`line %d: expected {"card":{"format":%q,..}} first`, n, Format)
		case l.Session != nil:
			d.Sessions = append(d.Sessions, *l.Session)
		case l.Query != nil && l.Query.Query != "" && len(l.Query.Relevant) > 0:
			d.Queries = append(d.Queries, *l.Query)
		case l.Edit != nil:
			d.Edits = append(d.Edits, *l.Edit)
		default:
			return nil, fmt.Errorf("line %d: expected a session, a query with relevant tools, or an edit", n)
		}
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, err
	case d.Card.Format == "":
		return nil, errors.New("it is empty")
	case d.Card.Sessions != len(d.Sessions) || d.Card.Queries != len(d.Queries) || d.Card.Edits != len(d.Edits):
		return nil, errors.New("it has fewer or more lines than its card says; a part may be missing")
	}
	return d, nil
}
