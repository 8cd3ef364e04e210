package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

// admitted takes the report on a plugin that is loaded or refused: on stderr, or with --json in the envelope.
func (a *App) admitted(report *parley.Admission) {
	if a.json {
		a.admissions = append(a.admissions, report)
		return
	}
	did, when := "Loaded", ", for the first time"
	if refusals := report.Errors(); len(refusals) > 0 {
		did, when = "Read", ""
		rest := *report // the error that follows has the refusals
		rest.Findings = slices.DeleteFunc(slices.Clone(report.Findings), func(f lint.Finding) bool {
			return slices.Contains(refusals, f)
		})
		report = &rest
	}
	fmt.Fprintf(a.Err, "%s %s %s (%s, %s)%s\n",
		did, report.Plugin, report.Version, report.Kind, command.SignatureText(report.Signer), when)
	command.WriteAsks(a.Err, report.Rights, nil, nil)
	command.WriteAdmission(a.Err, report)
}

func reportPlugin(ctx context.Context, opts *pluginCheckOptions) error {
	data, err := command.AdmitPlugin(ctx, opts.app.deps, opts.name)
	if err != nil {
		return err
	}
	next := []string{"parley plugin install " + shellQuote(opts.name)}
	return opts.app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s)\n  %s\n", data.Plugin, data.Version, data.Kind,
			command.SignatureText(data.Signer))
		command.WriteAsks(w, data.Rights, nil, nil)
		command.WriteAdmission(w, data)
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

type pluginDiffOptions struct {
	app      *App
	old, now string
}

func newPluginDiff(app *App) *cobra.Command {
	opts := &pluginDiffOptions{app: app}
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what a new version of a plugin breaks",
		Long: "OLD and NEW are each a FILE.wasm, a folder, a manifest (FILE.json), the name of an installed plugin, or\n" +
			"the digest (sha256:...) of a build that is or was installed. Lists what is removed, renamed or narrowed,\n" +
			"effects that got worse, and rights that were added.",
		Example: "parley plugin diff hello ./hello/plugin.wasm",
		RunE:    runWith(runPluginDiff, opts, &opts.old, &opts.now),
	}
}

func runPluginDiff(ctx context.Context, opts *pluginDiffOptions) error {
	data, err := command.ComparePlugins(ctx, opts.app.deps, opts.old, opts.now)
	if err != nil {
		return err
	}
	next := []string{}
	if command.IsPluginFile(opts.now) && !strings.HasSuffix(opts.now, ".json") {
		next = append(next, "parley plugin install "+shellQuote(opts.now))
	}
	return opts.app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s -> %s %s: ", data.Old.Name, data.Old.Version, data.New.Name, data.New.Version)
		switch {
		case len(data.Changes) == 0:
			fmt.Fprintln(w, "nothing changes for callers")
		case data.Breaks == 0:
			fmt.Fprintln(w, "nothing breaks")
		case data.Major:
			fmt.Fprintf(w, "%s, which the major version announces\n", manifest.Plural(data.Breaks, "breaking change"))
		default:
			fmt.Fprintf(w, "%s without a higher major version; an upgrade has to be confirmed\n",
				manifest.Plural(data.Breaks, "breaking change"))
		}
		for _, c := range data.Changes {
			mark := "  "
			if c.Breaks {
				mark = "! "
			}
			fmt.Fprintln(w, mark+c.String())
		}
	})
}
