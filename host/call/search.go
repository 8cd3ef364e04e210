package call

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/advice"
	"github.com/parley-tools/parley/host/search"
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
		for _, r := range data.Results[:min(len(data.Results), maxRecordedHits)] {
			e.Hits = append(e.Hits, r.Name)
		}
	}
	h.record(e)
	return data, weak, err
}

// SearchDetailed is [Host.Search] with a level of detail: "names" has the signature of the first hit only, and only if
// its confidence is high; "signatures" has those of all hits; "full" adds tier 2 of each. It returns a warning if no
// hit matches well.
//
// With fits, which reports whether an answer is small enough to be sent, it leaves out what does not fit; one result
// stays in any case.
func (h *Host) SearchDetailed(ctx context.Context, p host.Principal, q host.SearchQuery, detail string,
	fits func(*search.Answer) bool) (*search.Answer, []string, error) {
	data, weak, err := h.Search(ctx, p, q)
	if err != nil {
		return nil, nil, err
	}
	answer, warnings := &search.Answer{SearchData: data}, []string{}
	if best := answer.Best(); best != nil {
		answer.Open = h.missingPage(ctx, best.Name, p)
	}
	if detail == "names" {
		search.KeepSignatures(data, 0)
	}
	search.WriteSignatures(data, h.Catalog())
	if fits != nil {
		answer.Reduce(fits)
	}
	if detail == "full" {
		for i, r := range data.Results {
			if fits != nil && !h.fitsWithDocs(*answer, r.Name, fits) {
				answer.LeftOut = append(answer.LeftOut, search.MissingDocs(len(data.Results)-i))
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

// fitsWithDocs reports whether an answer still fits with the documentation of one more result.
func (h *Host) fitsWithDocs(a search.Answer, name string, fits func(*search.Answer) bool) bool {
	at, err := h.Catalog().Find(name)
	if err != nil || at.Tool == nil {
		return true // it has no documentation
	}
	d, err := at.Describe(at.Tool, manifest.Tier2)
	if err != nil {
		return true
	}
	d.Next = advice.NextAfterDescribe(d)
	a.Docs = append(slices.Clip(a.Docs), d)
	if more := len(a.Results) - len(a.Docs); more > 0 {
		a.LeftOut = append(slices.Clip(a.LeftOut), search.MissingDocs(more))
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
	return search.Rank(h.Catalog(), q, h.unsigned, h.cfg.Debug)
}

// unsigned reports whether a plugin is neither shipped nor signed with a trusted key: anybody can make a key.
func (h *Host) unsigned(p host.Provider) bool {
	info := p.Info()
	signed := info.Owner != "" && info.Owner != host.OwnerShipped
	return info.Unsigned() || signed && h.cfg.Trusts != nil && !h.cfg.Trusts(info.Name, info.Owner)
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

// maxRecordedHits bounds [Event.Hits].
const maxRecordedHits = 10
