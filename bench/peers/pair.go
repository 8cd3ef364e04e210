package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-tools/parley/bench/internal/o200k"
)

// side is Parley or agent-browser at a page of its own, for what is compared call by call.
type side struct {
	seat
	open, look, click string // calls; %s is an address or an element
	mark              string // what a ref begins with in a click
}

// withPair opens both sides, Parley first, and a site.
func (b *bench) withPair(ctx context.Context, use func(context.Context, [2]side, *site) error) error {
	both := [2]side{
		{open: "parley page open %s --param here=true", look: "parley page snapshot --param roles=interactive",
			click: `parley page click "%s"`},
		{open: "agent-browser open %s", look: "agent-browser snapshot -i", click: `agent-browser click "%s"`, mark: "@"},
	}
	folder := filepath.Join(b.work, "pair")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for i := range both {
		seat, err := b.tools[i].seat(ctx, folder)
		if err != nil {
			return err
		}
		defer seat.end(context.WithoutCancel(ctx))
		both[i].seat = seat
	}
	s := newSite()
	defer s.close()
	return use(ctx, both, s)
}

// must makes a call that has to succeed.
func (s side) must(ctx context.Context, line string) (text string, took time.Duration, err error) {
	start := time.Now()
	r, err := s.call(ctx, line)
	took = time.Since(start)
	if err == nil && r.failed {
		err = fmt.Errorf("%s: %s", line, r.text)
	}
	return r.text, took, err
}

// subject is a page on which a snapshot and a click are timed, and the element that is clicked; "" if none is.
type subject struct{ page, role, name string }

var subjects = []subject{
	{"small.html", "button", "Save"}, {"cards.html", "link", "Fern 417"}, {pluginPages + "app.html", "button", "Sign in"},
	{pluginPages + "widgets.html", "button", "Role button"}, {pluginPages + "forms.html", "button", "More"},
	// pages by other hands, of 712 to 2,705 elements
	{page: packagePages + "uikit/tests/index.html"}, {page: packagePages + "uikit/tests/icon.html"},
	{page: packagePages + "uikit/tests/navbar.html"}, {page: packagePages + "spectre.css/docs/elements/forms.html"},
}

// fewestTimed is the least number of runs that make a median of times.
const fewestTimed = 20

// times prints how long a snapshot of the controls and a click take in an open browser. The tools take turns.
func (b *bench) times(ctx context.Context, both [2]side, s *site) error {
	fmt.Fprint(b.out, "\n| page | call | parley ms | agent-browser ms | ratio |\n|---|---|---|---|---|\n")
	for _, at := range subjects {
		if name, ok := strings.CutPrefix(at.page, packagePages); ok {
			if _, err := fs.Stat(packages, name); err != nil {
				return fmt.Errorf("%w; run make programs", err)
			}
		}
		var looks, clicks [2][]time.Duration
		for range max(b.runs, fewestTimed) {
			for i, side := range both {
				look, click, err := side.time(ctx, s.page(at.page), at)
				if err != nil {
					return err
				}
				looks[i], clicks[i] = append(looks[i], look), append(clicks[i], click)
			}
		}
		b.ratio(at.page, "snapshot", looks)
		if at.name != "" {
			b.ratio(at.page, "click", clicks)
		}
	}
	return nil
}

// time opens the page, and times a snapshot and a click: by the ref in the snapshot, or by name if it has none.
func (s side) time(ctx context.Context, url string, at subject) (look, click time.Duration, err error) {
	if _, _, err := s.must(ctx, fmt.Sprintf(s.open, url)); err != nil {
		return 0, 0, err
	}
	shown, look, err := s.must(ctx, s.look)
	if err != nil || at.name == "" {
		return look, 0, err
	}
	element := at.name
	if ref := refIn(shown, at.role, at.name); ref != "" {
		element = s.mark + ref
	}
	_, click, err = s.must(ctx, fmt.Sprintf(s.click, element))
	return look, click, err
}

func (b *bench) ratio(page, call string, took [2][]time.Duration) {
	var ms [2]float64
	for i, all := range took {
		ms[i] = float64(median(all, func(d time.Duration) time.Duration { return d }).Microseconds()) / 1000
	}
	fmt.Fprintf(b.out, "| %s | %s | %.0f | %.0f | %.2f |\n", page, call, ms[0], ms[1], ms[0]/ms[1])
}

// looks prints the tokens of a snapshot of the controls of every page.
func (b *bench) looks(ctx context.Context, both [2]side, s *site) error {
	names, err := pageNames()
	if err != nil {
		return err
	}
	fmt.Fprint(b.out, "\n| controls of | parley tokens | agent-browser tokens |\n|---|---|---|\n")
	var sum [2]int
	for _, name := range names {
		var tokens [2]int
		for i, side := range both {
			if _, _, err := side.must(ctx, fmt.Sprintf(side.open, s.page(name))); err != nil {
				return err
			}
			shown, _, err := side.must(ctx, side.look)
			if err != nil {
				return err
			}
			tokens[i] = o200k.Count(shown)
			sum[i] += tokens[i]
		}
		fmt.Fprintf(b.out, "| %s | %d | %d |\n", name, tokens[0], tokens[1])
	}
	_, err = fmt.Fprintf(b.out, "| all | %d | %d |\n", sum[0], sum[1])
	return err
}
