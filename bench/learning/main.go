// Command learning measures `parley docs suggest` without a model: how many damages of documentation its rules repair
// from what simulated agents do, how often they edit documentation that has none, and whether agents get on better
// after it. With -update it writes the figures between the markers in bench/learning/report.md.
//
// For each seed, each tool of a catalog is damaged in one of eleven classes. Agents work with the damaged tools; the
// traces, the statistics, the rules, the gate and the overlays are those of Parley. Then agents work with the edited
// tools, and the same agents with tools that were never damaged, of which every proposed edit is a false one. The same
// seeds give the same report. See [agent] for the agents, and [damage] for the damages.
package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/parley-tools/parley/manifest"

	"github.com/parley-tools/parley/bench/internal/tree"
)

// The catalog has the shipped plugins, and one of the thirds of those of third parties. The rules were improved on the
// first third.
const stride = 3

func main() {
	seed := flag.Uint64("seed", 1, "the first seed")
	seeds := flag.Int("seeds", 5, "how many seeds, one after another")
	sessions := flag.Int("sessions", 1800, "sessions of each round; each has four tasks")
	misread := flag.Float64("misread", misreadRate, "how often an agent overlooks a fact that it reads, from 0 to 1")
	beliefs := flag.Bool("beliefs", false, "measure misstatements, and print those that were not repaired in the half "+
		"that rules may be improved on")
	update := flag.Bool("update", false, "write the figures into bench/learning/report.md")
	flag.Parse()
	tree.Main("learning", func(ctx context.Context) error {
		if *beliefs {
			return runBeliefs(ctx, *seed, *seeds, *sessions, *update)
		}
		return run(ctx, *seed, *seeds, *sessions, *misread, *update)
	})
}

func run(ctx context.Context, seed uint64, seeds, sessions int, misread float64, update bool) error {
	c, err := loadCatalog(".", stride, 0)
	if err != nil {
		return err
	}
	all := newOutcome()
	for n := range seeds {
		o, err := simulate(ctx, c, seed+uint64(n), sessions, misread)
		if err != nil {
			return err
		}
		all.add(o)
	}
	text := fmt.Sprintf("%s, %d tools of %d plugins, %d sessions of %d tasks in each round, %.3g %% of facts "+
		"overlooked.\nIntervals are Wilson's, 95 %%.\n\n%s", manifest.Plural(seeds, "seed"), len(c.wanted()), len(c.plugins),
		sessions, tasksOfSession, 100*misread, all.report())
	fmt.Print(text)
	if !update {
		return nil
	}
	others, err := compareRates(ctx, c, seed, sessions)
	if err != nil {
		return err
	}
	thirds, err := compareThirds(ctx, seed, sessions, misread)
	if err != nil {
		return err
	}
	figures := strings.Join([]string{"", text, others, thirds, ""}, "\n")
	return tree.Section{File: "bench/learning/report.md", Name: "figures"}.Write(figures)
}

// runBeliefs prints the figures of misstatements for the half that rules may be improved on. With update it writes
// those of both halves.
func runBeliefs(ctx context.Context, seed uint64, seeds, sessions int, update bool) error {
	out, err := believe(ctx, seed, seeds, sessions)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n%s", strings.Join(out.examples, "\n"), out.report(0))
	if !update {
		return nil
	}
	still, err := believe(ctx, seed, seeds, 0)
	if err != nil {
		return err
	}
	figures := fmt.Sprintf("\n%s, %d and %d tools, %d sessions in each round.\n\n"+
		"The half that rules may be improved on:\n\n%s\nThe half held apart:\n\n%s\nWithout any call:\n\n",
		manifest.Plural(seeds, "seed"), out.tools[0]/seeds, out.tools[1]/seeds, sessions, out.report(0), out.report(1))
	for part, name := range []string{"first half", "half held apart"} {
		figures += fmt.Sprintf("- %s: %s repaired, %d edited and still wrong\n", name, still.repaired(part),
			still.sum(part).verdicts[remains])
	}
	figures += "\n"
	return tree.Section{File: "bench/learning/report.md", Name: "misstatements"}.Write(figures)
}

// believe measures misstatements with several seeds.
func believe(ctx context.Context, seed uint64, seeds, sessions int) (*beliefs, error) {
	c, err := loadCatalog(".", stride, 0)
	if err == nil {
		err = c.listed()
	}
	out := newBeliefs()
	for n := 0; n < seeds && err == nil; n++ {
		err = out.believe(ctx, c, seed+uint64(n), sessions)
	}
	return out, err
}

// compareRates returns how the figures of one seed depend on how often agents overlook what they read.
func compareRates(ctx context.Context, c *catalog, seed uint64, sessions int) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "| facts overlooked (seed %d) | repaired | false edits in 100 tools | gain |\n", seed)
	b.WriteString("|---|---|---|---|\n")
	for _, rate := range []float64{0, 0.01, 0.03, 0.1} {
		o, err := simulate(ctx, c, seed, sessions, rate)
		if err != nil {
			return "", err
		}
		all, falseEdits := o.sum()
		fmt.Fprintf(&b, "| %.3g %% | %s | %.1f | %+.1f |\n", 100*rate, share(all.repaired, all.damaged),
			in100(falseEdits, o.tools), 100*(all.after.share()-all.before.share()))
	}
	fmt.Print("\n", b.String())
	return b.String(), nil
}

// compareThirds returns the figures of catalogs and seeds that the rules were not improved on.
func compareThirds(ctx context.Context, seed uint64, sessions int, misread float64) (string, error) {
	var b strings.Builder
	b.WriteString("| catalog and seeds that the rules were not improved on | tools | repaired | " +
		"false edits in 100 tools | first try: round 1 | round 2 | undamaged |\n|---|---|---|---|---|---|---|\n")
	for third := range stride {
		c, err := loadCatalog(".", stride, third)
		if err != nil {
			return "", err
		}
		from := seed + uint64(1000*(third+1))
		both := newOutcome()
		for n := range 2 {
			o, err := simulate(ctx, c, from+uint64(n), sessions, misread)
			if err != nil {
				return "", err
			}
			both.add(o)
		}
		all, falseEdits := both.sum()
		fmt.Fprintf(&b, "| third %d, seeds %d and %d | %d | %s | %.1f | %s | %s | %s |\n", third+1, from, from+1,
			len(c.wanted()), share(all.repaired, all.damaged), in100(falseEdits, both.tools), all.before, all.after, all.intact)
	}
	fmt.Print("\n", b.String())
	return b.String(), nil
}
