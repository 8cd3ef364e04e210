package host

import (
	"context"

	"github.com/parley-tools/parley/manifest"
)

// Docs is the documentation of one tool, event or type at a tier, with the steps to take next.
type Docs struct {
	*manifest.ToolDocs
	Next []Step `json:"-"`
}

type docsSizeKey struct{}

// WithDocsSize returns a context for a front end that sends documentation in a form of its own: size returns the bytes
// of that form, by which calls and descriptions count documentation in their records. InError says that the
// documentation comes with the error of a call. Without it, records count [manifest.ToolDocs.Text].
func WithDocsSize(ctx context.Context, size func(d *Docs, inError bool) int) context.Context {
	return context.WithValue(ctx, docsSizeKey{}, size)
}

type maxTokensKey struct{}

// WithMaxTokens returns a context in which call.Host.Describe returns the best documentation that stays within a number
// of tokens, as the front end sends it; see [WithDocsSize]. What is left out is said in it. 0 means that there is no
// limit.
func WithMaxTokens(ctx context.Context, tokens int) context.Context {
	return context.WithValue(ctx, maxTokensKey{}, tokens)
}

// maxTokens returns the limit of [WithMaxTokens], 0 if there is none.
func maxTokens(ctx context.Context) int {
	n, _ := ctx.Value(maxTokensKey{}).(int)
	return n
}

// DocsTokens estimates the tokens of documentation as the front end sends it; 0 for nil.
func DocsTokens(ctx context.Context, d *Docs, inError bool) int {
	if d == nil {
		return 0
	}
	if size, ok := ctx.Value(docsSizeKey{}).(func(*Docs, bool) int); ok {
		return manifest.TokensOf(size(d, inError))
	}
	return d.Tokens()
}

// DescribeWithin returns the documentation of a tool at a tier, or the best part of it that stays within the limit of
// the context.
func (a Address) DescribeWithin(ctx context.Context, t *manifest.Tool, tier int) (*Docs, error) {
	d, err := a.Describe(t, tier)
	limit := maxTokens(ctx)
	if err != nil || limit == 0 {
		return d, err
	}
	fits := func() bool {
		d.Next = NextAfterDescribe(d)
		return DocsTokens(ctx, d, false) <= limit
	}
	if fits() {
		return d, nil
	}
	left := []string{}
	if tier == manifest.Tier3 {
		left = append(left, "tier 3")
		if d, err = a.Describe(t, manifest.Tier2); err != nil {
			return nil, err
		}
		if d.LeftOut = left; fits() {
			return d, nil
		}
	}
	for _, part := range d.Reductions() {
		if !part.Remove() {
			continue
		}
		left = append(left, part.Name)
		if d.LeftOut = left; fits() {
			return d, nil
		}
	}
	if d, err = a.Describe(t, manifest.Tier1); err != nil {
		return nil, err
	}
	if tier > manifest.Tier1 {
		d.LeftOut = []string{"all but tier 1"}
	}
	return d, nil
}
