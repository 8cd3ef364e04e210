package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// diff says what the protocol of a browser has that the embedded one has not, and the other way round.
func (a *App) diff(ctx context.Context, at host.Address, browser string) error {
	if at.Provider != host.Provider(a.deps.Parley().Chrome()) || at.Group != "" || at.Tool != nil || at.Entry != nil {
		return host.Errorf(host.InvalidArgs, "--diff compares versions of a protocol, and %s has none", at.Name()).WithNext("parley cdp --diff")
	}
	s, err := a.deps.Settings()
	if err != nil {
		return err
	}
	d, err := a.deps.Parley().Chrome().Diff(ctx, cmp.Or(browser, s.Browser))
	if err != nil {
		return err
	}
	next := []string{"parley cdp --list --live"}
	if added := d.Methods.Added; len(added) > 0 {
		next = []string{"parley cdp " + added[0] + " --describe --live"}
	}
	return a.answer(d, next, func(w io.Writer) {
		fmt.Fprintf(w, "devtools-protocol %s -> %s: %s\n", d.Embedded, manifest.CleanLine(d.Browser), plural(d.Total, "difference"))
		for _, k := range []struct {
			name string
			cdp.Changes
		}{{"Domains", d.Domains}, {"Methods", d.Methods}, {"Events", d.Events}, {"Types", d.Types}, {"Parameters", d.Parameters}} {
			if len(k.Added)+len(k.Removed)+len(k.Changed) == 0 {
				continue
			}
			fmt.Fprintf(w, "%s: %d added, %d removed, %d changed\n", k.name, len(k.Added), len(k.Removed), len(k.Changed))
			for _, name := range k.Added {
				fmt.Fprintln(w, "  + "+name)
			}
			for _, name := range k.Removed {
				fmt.Fprintln(w, "  - "+name)
			}
			for _, c := range k.Changed {
				fmt.Fprintf(w, "  ~ %s %s: %s -> %s\n", c.Name, c.Attribute, cmp.Or(c.Was, "none"), cmp.Or(c.Is, "none"))
			}
		}
		fmt.Fprintln(w, "Next: "+next[0])
	})
}
