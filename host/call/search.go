package call

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/manifest"
)

// Search finds tools by a description in natural language. It starts no engine and uses no network. weak reports that
// no hit matches well. The error is not_found for a plugin or a group that does not exist.
func (h *Host) Search(ctx context.Context, p host.Principal, q host.SearchQuery) (
	data *host.SearchData, weak bool, err error,
) {
	began := time.Now()
	h.Refresh()
	data, weak, err = h.Rank(q)
	e := h.event(ctx, "search", p, began)
	e.Query, e.Duration = q.Text, time.Since(began)
	if err != nil {
		e.Err = host.AsError(err)
	} else {
		for _, r := range data.Results[:min(len(data.Results), host.MaxRecordedHits)] {
			e.Hits = append(e.Hits, r.Name)
		}
	}
	h.record(e)
	return data, weak, err
}

// SearchAnswer is the result of a search at a level of detail; see [Host.SearchDetailed].
type SearchAnswer struct {
	*host.SearchData
	Docs []*host.Docs `json:"docs,omitempty"`
	// LeftOut is what a limit of tokens left no place for.
	LeftOut []string `json:"left_out,omitempty"`
	// Open is the step that is required before the first result can be called; nil if there is none.
	Open *host.Step `json:"-"`
}

// Best returns the result that a next step may name: the first, unless its confidence is low. Nil means that there is
// none.
func (a *SearchAnswer) Best() *host.SearchResult {
	if len(a.Results) == 0 || a.Results[0].Confidence == "low" {
		return nil
	}
	return &a.Results[0]
}

// SearchDetailed is [Host.Search] with a level of detail: "names" has the signature of the first hit only, and only if
// its confidence is high; "signatures" has those of all hits; "full" adds tier 2 of each. It returns a warning if no
// hit matches well.
//
// With fits, which reports whether an answer is small enough to be sent, it leaves out what does not fit; one result
// stays in any case.
func (h *Host) SearchDetailed(ctx context.Context, p host.Principal, q host.SearchQuery, detail string,
	fits func(*SearchAnswer) bool) (*SearchAnswer, []string, error) {
	data, weak, err := h.Search(ctx, p, q)
	if err != nil {
		return nil, nil, err
	}
	answer, warnings := &SearchAnswer{SearchData: data}, []string{}
	if best := answer.Best(); best != nil {
		answer.Open = h.missingPage(ctx, best.Name, p)
	}
	if detail == "names" {
		keepSignatures(data, 0)
	}
	writeSignatures(data, h.Catalog())
	if fits != nil {
		answer.reduce(fits)
	}
	if detail == "full" {
		for i, r := range data.Results {
			if fits != nil && !h.fitsWithDocs(*answer, r.Name, fits) {
				answer.LeftOut = append(answer.LeftOut, missingDocs(len(data.Results)-i))
				break
			}
			d, err := h.Describe(ctx, p, r.Name, manifest.Tier2)
			if err != nil {
				break
			}
			answer.Docs = append(answer.Docs, d)
		}
	}
	if data.Foreign && (len(data.Results) == 0 || data.Results[0].Confidence != "high") {
		warnings = append(warnings, "search reads English; translate the query if it is in another language")
	}
	if weak {
		w := "no tool matches well"
		if len(data.NearestGroups) > 0 {
			w += "; nearest groups: " + strings.Join(data.NearestGroups, ", ")
		}
		warnings = append(warnings, w)
	}
	return answer, warnings, nil
}

// writeSignatures sets what a text shows of the results that have a signature.
func writeSignatures(d *host.SearchData, c *host.Catalog) {
	for i := range d.Results {
		r := &d.Results[i]
		if r.Signature == "" {
			continue
		}
		if at, err := c.Find(r.Name); err == nil && at.Tool != nil {
			r.Typed = manifest.TypedSignature(at.Name(), at.Tool)
		} else {
			r.Typed = r.Name[:strings.LastIndexByte(r.Name, '.')+1] + r.Signature
		}
	}
}

// keepSignatures removes the signatures of the results, except for that of a sure one at index i.
func keepSignatures(d *host.SearchData, i int) {
	for k := range d.Results {
		if k != i || d.Results[k].Confidence != "high" {
			d.Results[k].Signature = ""
		}
	}
}

// reduce removes signatures, and then results from the end, until an answer fits.
func (a *SearchAnswer) reduce(fits func(*SearchAnswer) bool) {
	for _, keep := range []int{0, -1} {
		if fits(a) {
			return
		}
		keepSignatures(a.SearchData, keep)
		a.LeftOut = []string{"signatures"}
	}
	for dropped := 1; len(a.Results) > 1 && !fits(a); dropped++ {
		a.Results = a.Results[:len(a.Results)-1]
		a.LeftOut = []string{"signatures", manifest.Plural(dropped, "result")}
	}
}

func missingDocs(n int) string { return "the documentation of " + manifest.Plural(n, "result") }

// fitsWithDocs reports whether an answer still fits with the documentation of one more result.
func (h *Host) fitsWithDocs(a SearchAnswer, name string, fits func(*SearchAnswer) bool) bool {
	at, err := h.Catalog().Find(name)
	if err != nil || at.Tool == nil {
		return true // it has no documentation
	}
	d, err := at.Describe(at.Tool, manifest.Tier2)
	if err != nil {
		return true
	}
	d.Next = host.NextAfterDescribe(d)
	a.Docs = append(slices.Clip(a.Docs), d)
	if more := len(a.Results) - len(a.Docs); more > 0 {
		a.LeftOut = append(slices.Clip(a.LeftOut), missingDocs(more))
	}
	return fits(&a)
}

// missingPage returns the step that opens a page if a tool requires one and the session has none, or nil.
func (h *Host) missingPage(ctx context.Context, name string, p host.Principal) *host.Step {
	at, err := h.Catalog().Find(name)
	if err != nil || at.Tool == nil {
		return nil
	}
	job := &host.Job{Tool: at.Tool.Name, Caller: p.Name, Session: p.Session,
		Options: host.Options{Browser: host.DefaultBrowser}}
	if missing := at.Provider.Features().MissingPage; missing != nil {
		return missing(ctx, job)
	}
	if at.Tool.Reach != manifest.ReachPage {
		return nil
	}
	// A plugin's tool that acts on a page requires what the provider of pages says.
	job.Tool = ""
	for _, other := range h.Catalog().Providers() {
		if missing := other.Features().MissingPage; missing != nil {
			return missing(ctx, job)
		}
	}
	return nil
}

// Rank is [Host.Search] without a record.
func (h *Host) Rank(q host.SearchQuery) (*host.SearchData, bool, error) {
	catalog := h.Catalog()
	providers := catalog.Providers()
	if q.Plugin != "" {
		p, ok := catalog.Provider(q.Plugin)
		if !ok {
			return nil, false, catalog.UnknownPlugin(q.Plugin)
		}
		providers = []host.Provider{p}
	}
	text := manifest.Strip(q.Text) // the result repeats the text that was searched for
	found := index.Search(catalog.SegmentsOf(providers, h.cfg.Debug), index.Query{
		Text: text, Group: q.Group, Effect: q.Effect, Category: q.Category, Kind: q.Kind, Limit: q.Limit, Explain: q.Explain,
		Last: func(plugin string) bool { return h.unsigned(catalog, plugin) },
	})
	if found.Total == 0 && q.Group != "" {
		if err := unknownGroup(providers, q.Group); err != nil {
			return nil, false, err
		}
	}
	data := &host.SearchData{Query: text, Total: found.Total, Results: []host.SearchResult{}, NearestGroups: found.Groups,
		Foreign: found.Foreign}
	for _, hit := range found.Hits {
		r := host.SearchResult{
			Name: hit.Plugin + "." + hit.Name, Brief: hit.Brief, Why: hit.Why, Score: hit.Score, Confidence: hit.Confidence,
			Signature: hit.Signature, Effect: hit.Effect, Deprecated: hit.Deprecated, Experimental: hit.Experimental,
			Parts: hit.Parts, Unsigned: h.unsigned(catalog, hit.Plugin),
		}
		if hit.Kind != "tool" {
			r.Kind = hit.Kind
		}
		data.Results = append(data.Results, r)
	}
	data.Results = demoteDeprecated(catalog, q, data.Results)
	data.Total = max(data.Total, len(data.Results))
	return data, found.Weak, nil
}

// demoteDeprecated puts each deprecated tool behind the one of its plugin that replaces it, which need not be a hit. A
// query that spells the name of the deprecated tool still finds it first, and a query with filters only what passes
// them.
func demoteDeprecated(catalog *host.Catalog, q host.SearchQuery, results []host.SearchResult) []host.SearchResult {
	text := strings.TrimSpace(manifest.Strip(q.Text))
	filtered := q.Group != "" || q.Effect != "" || q.Category != ""
	limit := cmp.Or(q.Limit, 10)
	for i := len(results) - 1; i >= 0; i-- {
		r := results[i]
		if !r.Deprecated {
			continue
		}
		at, err := catalog.Find(r.Name)
		if err != nil || at.Tool == nil || at.Tool.Deprecated == nil || at.Tool.Deprecated.Use == "" {
			continue
		}
		if spells(text, at.Plugin, at.Tool.Name) {
			continue
		}
		use, err := catalog.FindIn(at.Plugin, at.Tool.Deprecated.Use)
		if err != nil || use.Tool == nil {
			continue
		}
		j := slices.IndexFunc(results, func(r host.SearchResult) bool { return r.Name == use.Name() })
		switch {
		case j > i:
			copy(results[i:j], results[i+1:j+1])
			r.Score = min(r.Score, results[j-1].Score)
			results[j] = r
		case j < 0 && !filtered:
			tool := use.Tool
			results = slices.Insert(results, i, host.SearchResult{
				Name: use.Name(), Brief: manifest.CleanLine(tool.Docs.Brief), Why: "replaces " + r.Name, Score: r.Score,
				Confidence: r.Confidence, Effect: tool.Effect, Experimental: tool.Experimental, Unsigned: r.Unsigned,
				Signature: manifest.Signature(host.LocalName(tool.Name), manifest.Params(tool.Params)),
			})
		}
	}
	if limit > 0 && len(results) > limit {
		results = results[:limit]
	}
	return results
}

// spells reports whether a query is the name of a tool: as one word that may have a typo, or as its words.
func spells(text, plugin, name string) bool {
	if !strings.Contains(text, " ") {
		if _, ok := host.Resembles(plugin, name, strings.ReplaceAll(text, "__", ".")); ok {
			return true
		}
	}
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				return -1
			}
			return unicode.ToLower(r)
		}, s)
	}
	query := letters(text)
	return query == letters(host.LocalName(name)) || query == letters(name) || query == letters(plugin+name)
}

// unsigned reports whether a plugin is neither shipped nor signed with a trusted key: anybody can make a key.
func (h *Host) unsigned(catalog *host.Catalog, plugin string) bool {
	p, ok := catalog.Provider(plugin)
	if !ok || p.Info().Unsigned() {
		return true
	}
	signed := p.Info().Owner != "" && p.Info().Owner != host.OwnerShipped
	return signed && h.cfg.Trusts != nil && !h.cfg.Trusts(p.Info().Name, p.Info().Owner)
}

// unknownGroup returns a not_found error if none of the plugins has a group of this name.
func unknownGroup(providers []host.Provider, name string) error {
	e, next := host.Errorf(host.NotFound, "no plugin has a group named %s", host.Printable(name)), host.ListStep("")
	if len(providers) == 1 {
		plugin := providers[0].Info().Name
		e.Message, next = plugin+" has no group named "+host.Printable(name), host.ListStep(plugin)
	}
	for _, p := range providers {
		plugin := p.Info().Name
		groups, _ := p.Groups()
		var names []string
		for _, g := range groups {
			if strings.EqualFold(name, g.Name) || strings.EqualFold(name, plugin+"."+g.Name) {
				return nil
			}
			names = append(names, g.Name)
		}
		e.DidYouMean = append(e.DidYouMean, host.Nearest(plugin, name, names)...)
	}
	e.DidYouMean = host.Closest(e.DidYouMean)
	return e.WithSteps(next)
}

// Plan is [advice.PlanOf] for the tool of a name, or else, for words without a dot, for the first hit of a search,
// which a warning names.
func (h *Host) Plan(ctx context.Context, q advice.PlanQuery) (*advice.Plan, []string, error) {
	plan, err := advice.PlanOf(ctx, h.Catalog(), q)
	if err == nil || host.AsError(err).Code != host.NotFound || strings.Contains(q.Tool, ".") {
		return plan, nil, err
	}
	found, weak, searchErr := h.Search(ctx, q.Principal, host.SearchQuery{Text: q.Tool, Limit: 1})
	if searchErr != nil || weak || len(found.Results) == 0 {
		return nil, nil, err
	}
	q.Tool = found.Results[0].Name
	if plan, err = advice.PlanOf(ctx, h.Catalog(), q); err != nil {
		return nil, nil, err
	}
	return plan, []string{q.Tool + " is the first hit of a search for these words"}, nil
}
