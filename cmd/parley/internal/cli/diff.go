package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

// runDiff prints how the protocol of a browser differs from the embedded one.
func runDiff(ctx context.Context, app *App, opts command.DiffOptions) error {
	d, err := command.Diff(ctx, app.deps, opts)
	if err != nil {
		return err
	}
	next := []string{"parley cdp --list --live"}
	if added := d.Methods.Added; len(added) > 0 {
		next = []string{"parley cdp " + added[0] + " --describe --live"}
	}
	return app.print(d, next, func(w io.Writer) {
		fmt.Fprintf(w, "devtools-protocol %s -> %s: %s\n",
			d.Embedded, manifest.CleanLine(d.Browser), manifest.Plural(d.Total, "difference"))
		for _, k := range []struct {
			name string
			cdp.Changes
		}{
			{"Domains", d.Domains}, {"Methods", d.Methods}, {"Events", d.Events}, {"Types", d.Types},
			{"Parameters", d.Parameters},
		} {
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
