package command

import (
	"context"
	"os"
	"slices"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// SearchOptions are the options of a search.
type SearchOptions struct {
	host.SearchQuery
	Detail string // names, signatures or full; "" means names
	// Fits reports whether an answer is small enough; what does not fit is left out. Nil means that everything fits.
	Fits func(*host.SearchAnswer) bool
}

// MaxHits is how many results a search may ask for.
const MaxHits = 1000

// SearchWords are the words that options of a search may have, by the name of the option.
var SearchWords = map[string][]string{
	"effect":   {"read", "write", "destructive"},
	"kind":     {"tool", "event", "type"},
	"detail":   {"names", "signatures", "full"},
	"category": {"generation", "review", "correction", "planning", "query", "action"},
}

// Search returns the tools that match a text, best first, with the reason and the confidence of each match, and
// warnings. The error is invalid_args for an option with an unknown value, or a text without words.
func Search(ctx context.Context, d *Deps, o SearchOptions) (*host.SearchAnswer, []string, error) {
	for _, c := range [][2]string{
		{"effect", o.Effect}, {"kind", o.Kind}, {"detail", o.Detail}, {"category", o.Category},
	} {
		if allowed := SearchWords[c[0]]; c[1] != "" && !slices.Contains(allowed, c[1]) {
			return nil, nil, UnknownValue(c[0], c[1], allowed)
		}
	}
	if o.Limit < 0 || o.Limit > MaxHits {
		return nil, nil, InvalidLimit(o.Limit)
	}
	if manifest.CleanLine(manifest.Strip(o.Text)) == "" {
		return nil, nil, host.Errorf(host.InvalidArgs, "parley search requires a QUERY").
			WithSteps(host.SearchStep("take a screenshot"))
	}
	h, err := d.Host(ctx)
	if err != nil {
		return nil, nil, err
	}
	session, err := d.Session()
	if err != nil {
		return nil, nil, err
	}
	return h.SearchDetailed(ctx, Caller, session, o.SearchQuery, o.Detail, o.Fits)
}

// InvalidLimit returns the error of a limit that no search can have.
func InvalidLimit(limit int) *host.Error {
	return host.Errorf(host.InvalidArgs, "--limit: %d is not between 1 and %d", limit, MaxHits).
		WithSteps(host.OperatorStep(host.OpHelp, "search"))
}

// evalLine is an example of a line of an evaluation set.
const evalLine = `one line a query: {"query":"take a picture","relevant":{"cdp.Page.captureScreenshot":3}}`

// Evaluate scores the search by a file of queries with graded results: over the installed plugins, or over the list of
// MCP tools in the file tools. Authors can so test their own set in CI.
func Evaluate(ctx context.Context, d *Deps, path, tools string) (*host.EvalReport, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, host.Errorf(host.InvalidArgs, "--eval: %s", manifest.CleanLine(err.Error())).WithNext(evalLine)
	}
	defer file.Close()
	set, err := host.ReadEval(file)
	if err != nil {
		e := host.AsError(err)
		if e.Code == host.Internal { // reading failed, such as that of a folder
			e = host.Errorf(host.InvalidArgs, "--eval: %s", manifest.CleanLine(err.Error()))
		}
		return nil, e.WithNext(evalLine)
	}
	h, err := d.measured(ctx, tools)
	if err != nil {
		return nil, err
	}
	return host.Evaluate(set, h), nil
}
