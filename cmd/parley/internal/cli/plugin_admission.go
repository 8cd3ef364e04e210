package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
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
		did, report.Plugin, report.Version, report.Kind, signatureText(report.Signer), when)
	writeAsks(a.Err, report.Rights, nil, nil)
	writeAdmission(a.Err, report)
}

// maxListed bounds the findings and the examples that a report lists.
const maxListed = 10

// writeAdmission writes a report, apart from signature and rights, which the lines above it have.
func writeAdmission(w io.Writer, a *parley.Admission) {
	var effects []string
	for _, effect := range []string{manifest.EffectRead, manifest.EffectWrite, manifest.EffectDestructive} {
		if names := a.Effects[effect]; len(names) > 0 {
			text := fmt.Sprintf("%d %s", len(names), effect)
			if effect != manifest.EffectRead {
				text += " (" + manifest.Clip(strings.Join(names, ", "), 80) + ")"
			}
			effects = append(effects, text)
		}
	}
	owner := a.Owner
	if owner != host.OwnerShipped && owner != host.OwnerUnsigned {
		owner = "its signer"
	}
	fmt.Fprintf(w, "  effects: %s; owner: %s; %d bytes", strings.Join(effects, ", "), owner, a.Bytes)
	if a.CompileMS > 0 {
		fmt.Fprintf(w, ", compiled in %d ms", a.CompileMS)
	}
	fmt.Fprintln(w)
	if len(a.Examples) > 0 {
		fmt.Fprintf(w, "  examples: %d of %d are verified\n", a.Verified, len(a.Examples))
		listed, reasons := 0, map[string]int{}
		for _, r := range a.Examples {
			if r.Status == parley.ExampleNotRun {
				reasons[r.Reason]++
			}
		}
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			if listed++; listed <= maxListed {
				fmt.Fprintf(w, "    %d not run: %s\n", reasons[reason], reason)
			}
		}
		listed = 0
		for _, r := range a.Examples {
			if r.Status == parley.ExampleDiffers && listed < maxListed {
				fmt.Fprintf(w, "    differs: %s %q: %s\n", r.Tool, r.Title, r.Reason)
				listed++
			}
		}
	}
	for i, f := range a.Findings {
		if i == maxListed {
			fmt.Fprintf(w, "  and %d more; --json lists them all\n", len(a.Findings)-maxListed)
			break
		}
		mark := ""
		for _, rule := range a.Accepted {
			if rule == f.Rule && f.Severity == lint.Error {
				mark = ", accepted"
			}
		}
		fmt.Fprintf(w, "  %s%s %s: %s: %s\n", f.Severity, mark, f.Rule, cmp.Or(f.Pointer, "/"), f.Message)
	}
}

func reportPlugin(ctx context.Context, opts *pluginCheckOptions) error {
	data, err := command.AdmitPlugin(ctx, opts.app.deps, opts.name)
	if err != nil {
		return err
	}
	next := []string{"parley plugin install " + shellQuote(opts.name)}
	return opts.app.print(data, next, func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s)\n  %s\n", data.Plugin, data.Version, data.Kind,
			signatureText(data.Signer))
		writeAsks(w, data.Rights, nil, nil)
		writeAdmission(w, data)
		fmt.Fprintln(w, "Next: "+next[0])
	})
}

type pluginDiffOptions struct {
	app      *App
	old, now string
}

func newPluginDiff(app *App, run runFunc[pluginDiffOptions]) *cobra.Command {
	opts, run := &pluginDiffOptions{app: app}, run.or(runPluginDiff)
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what a new version of a plugin breaks",
		Long: "OLD and NEW are each a FILE.wasm, a folder, a manifest (FILE.json), the name of an installed plugin, or\n" +
			"the digest (sha256:...) of a build that is or was installed. Lists what is removed, renamed or narrowed,\n" +
			"effects that got worse, and rights that were added.",
		Example: "parley plugin diff hello ./hello/plugin.wasm",
		RunE:    run.with(opts, &opts.old, &opts.now),
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
			fmt.Fprintf(w, "%s, which the major version announces\n", plural(data.Breaks, "breaking change"))
		default:
			fmt.Fprintf(w, "%s without a higher major version; an upgrade has to be confirmed\n",
				plural(data.Breaks, "breaking change"))
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
