package page_test

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestSelectors looks for selectors on pages twice: as they are, where the browser finds the elements, and with a
// shadow root that shows nothing, where page.js walks through all. Both find the same elements.
func TestSelectors(t *testing.T) {
	c := startChrome(t)
	pages := []string{`<title>Kinds</title><details><summary>Closed</summary><a href=#>In it</a></details>
		<details open><summary>Open</summary><a href=#>In it</a></details><details><p>Without a summary</p></details>
		<div hidden><a href=#>Hidden</a></div><div inert><a href=#>Inert</a></div><div aria-hidden=true><a href=#>Aria</a></div>
		<div style="display: contents"><a href=#>Contents</a></div><div style="visibility: hidden"><a href=#>Invisible</a></div>
		<div style="content-visibility: hidden"><a href=#>Not rendered</a></div><select><option>One</option></select>
		<canvas><a href=#>Fallback</a></canvas><div role=slider><a href=#>Handle</a></div>
		<svg><a href=#><text y=20>Drawn</text></a></svg>
		<template><a href=#>Template</a></template><noscript><a href=#>Noscript</a></noscript>`}
	for _, page := range must(filepath.Glob("testdata/*.html")) {
		if name := filepath.Base(page); name != "clobbered.html" { // it has no attachShadow
			pages = append(pages, name)
		}
	}
	for _, set := range readPages(t) {
		for i := 3; i < len(set.pages); i += 40 {
			pages = append(pages, set.pages[i])
		}
	}
	found := 0
	for _, page := range pages {
		c.open(t, page)
		var before []FindResult
		for round := range 2 {
			for i, selector := range []string{"css=*", "css=a", "css=body *:not(a)"} {
				r, err := run(t, c, Find, FindParams{Element: selector, Limit: 20})
				if err != nil {
					r = FindResult{Note: exit(err)[:8]} // nothing matches
				}
				if round == 0 {
					before = append(before, r)
					found += r.Total
					continue
				}
				if same := before[i]; r.Total != same.Total || r.Note != same.Note || !slices.Equal(r.Matches, same.Matches) {
					t.Errorf("%.40s: %s finds %d, and %d with a shadow root:\n%+v\n%+v", page, selector, same.Total, r.Total,
						same.Matches, r.Matches)
				}
			}
			c.evaluate(t, `document.head.appendChild(document.createElement("span")).attachShadow({mode: "open"}).mode`)
		}
	}
	if found < 100 {
		t.Errorf("%d elements were found", found)
	}
}
