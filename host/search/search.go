// Package search finds tools by a description in natural language, and makes the answer as small as its reader wants.
package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/internal/index"
	"github.com/parley-tools/parley/host/step"
	"github.com/parley-tools/parley/manifest"
)

// near is the largest difference between the scores of hits that match equally well. The name of a plugin alone makes
// a small difference.
const near = 0.01

// Order is how hits that match equally well are ordered.
type Order struct {
	// Prefer are plugins whose hits come first, in this order. The built-in ones come after them: page, then cdp; then
	// those that ship with Parley, then others.
	Prefer []string
	// Trusts reports whether the signer of a plugin is trusted. Unsigned plugins, and those of other signers, come last.
	// Nil means that every signer is trusted.
	Trusts func(plugin, owner string) bool
	// Exact means that only hits with the same score match equally well.
	Exact bool
}

// place returns the rank of a plugin's hits; the lowest comes first.
func (o *Order) place(p host.Provider) int {
	info := p.Info()
	isNamed := func(name string) bool { return strings.EqualFold(name, info.Name) }
	if i := slices.IndexFunc(o.Prefer, isNamed); i >= 0 {
		return i
	}
	if i := slices.IndexFunc([]string{"page", "cdp"}, isNamed); i >= 0 && info.Kind == manifest.KindBuiltin {
		return len(o.Prefer) + i
	}
	rest := len(o.Prefer) + 2
	switch {
	case info.Identity() == host.OwnerShipped:
		return rest
	case o.isUnsigned(p):
		return rest + 2
	}
	return rest + 1
}

// isUnsigned reports whether a plugin is neither shipped nor signed with a trusted key: anybody can make a key.
func (o *Order) isUnsigned(p host.Provider) bool {
	info := p.Info()
	signed := info.Owner != "" && info.Owner != host.OwnerShipped
	return info.Unsigned() || signed && o.Trusts != nil && !o.Trusts(info.Name, info.Owner)
}

// Rank searches a catalog. weak reports that no hit matches well. The error is not_found for a plugin or a group that
// does not exist.
func Rank(catalog *host.Catalog, q Query, order Order, debug func(string, ...any)) (
	data *Data, weak bool, err error,
) {
	providers := catalog.Providers()
	if q.Plugin != "" {
		p, ok := catalog.Provider(q.Plugin)
		if !ok {
			return nil, false, catalog.UnknownPlugin(q.Plugin)
		}
		providers = []host.Provider{p}
	}
	isUnsigned := func(plugin string) bool {
		p, ok := catalog.Provider(plugin)
		return !ok || order.isUnsigned(p)
	}
	text := manifest.Strip(q.Text) // the result repeats the text that was searched for
	query := index.Query{Text: text, Group: q.Group, Effect: q.Effect, Category: q.Category, Kind: q.Kind, Limit: q.Limit,
		Explain: q.Explain, Near: near, Place: func(plugin string) int {
			p, ok := catalog.Provider(plugin)
			if !ok {
				return math.MaxInt // a segment of another plugin
			}
			return order.place(p)
		}}
	if order.Exact {
		query.Near = 0
	}
	found := index.Search(catalog.SegmentsOf(providers, debug), query)
	if found.Total == 0 && q.Group != "" {
		if err := unknownGroup(providers, q.Group); err != nil {
			return nil, false, err
		}
	}
	data = &Data{Query: manifest.Clip(text, maxQuery), Total: found.Total, Results: []Result{},
		NearestGroups: found.Groups, Signals: found.Signals, Foreign: found.Foreign, Whole: len(text) <= maxQuery}
	for _, hit := range found.Hits {
		r := Result{
			Name: hit.Plugin + "." + hit.Name, Brief: hit.Brief, Why: hit.Why, Score: hit.Score, Confidence: hit.Confidence,
			Signature: hit.Signature, Effect: hit.Effect, Deprecated: hit.Deprecated, Experimental: hit.Experimental,
			Parts: hit.Parts, Unsigned: isUnsigned(hit.Plugin),
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

// maxQuery is how much of a query the result repeats, in bytes.
const maxQuery = 400

// demoteDeprecated puts each deprecated tool behind the tool of its plugin that replaces it, which need not be a hit.
// A query that spells the name of the deprecated tool still finds it first, and a query with filters adds only tools
// that pass them.
func demoteDeprecated(catalog *host.Catalog, q Query, results []Result) []Result {
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
		j := slices.IndexFunc(results, func(r Result) bool { return r.Name == use.Name() })
		switch {
		case j > i:
			copy(results[i:j], results[i+1:j+1])
			r.Score = min(r.Score, results[j-1].Score)
			results[j] = r
		case j < 0 && !filtered:
			tool := use.Tool
			results = slices.Insert(results, i, Result{
				Name: use.Name(), Brief: manifest.CleanLine(tool.Docs.Brief), Why: "replaces " + r.Name, Score: r.Score,
				Confidence: r.Confidence, Effect: tool.Effect, Experimental: tool.Experimental, Unsigned: r.Unsigned,
				Signature: manifest.Signature(manifest.LocalName(tool.Name), manifest.Params(tool.Params)),
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
	return query == letters(manifest.LocalName(name)) || query == letters(name) || query == letters(plugin+name)
}

// unknownGroup returns a not_found error if none of the plugins has a group of this name.
func unknownGroup(providers []host.Provider, name string) error {
	e, next := host.Errorf(host.NotFound, "no plugin has a group named %s", host.Printable(name)), step.List("")
	if len(providers) == 1 {
		plugin := providers[0].Info().Name
		e.Message, next = plugin+" has no group named "+host.Printable(name), step.List(plugin)
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
