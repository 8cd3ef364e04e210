package command

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/admit"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

// admitted takes the report on a plugin that is loaded or refused: on stderr, or with --json in the envelope.
func admitted(a *App, report *admit.Report) {
	if a.JSON {
		a.said.admissions = append(a.said.admissions, report)
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
		did, report.Plugin, report.Version, report.Kind, SignatureText(report.Signer), when)
	WriteAsks(a.Err, report.Rights, nil, nil)
	WriteAdmission(a.Err, report)
}

// MaxListed bounds the findings and the examples that a report lists.
const MaxListed = 10

// WriteAdmission writes a report, apart from signature and rights, which the lines above it have.
func WriteAdmission(w io.Writer, a *admit.Report) {
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
			if r.Status == admit.ExampleNotRun {
				reasons[r.Reason]++
			}
		}
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			if listed++; listed <= MaxListed {
				fmt.Fprintf(w, "    %d not run: %s\n", reasons[reason], reason)
			}
		}
		listed = 0
		for _, r := range a.Examples {
			if r.Status == admit.ExampleDiffers && listed < MaxListed {
				fmt.Fprintf(w, "    differs: %s %q: %s\n", r.Tool, r.Title, r.Reason)
				listed++
			}
		}
	}
	for i, f := range a.Findings {
		if i == MaxListed {
			fmt.Fprintf(w, "  and %d more; --json lists them all\n", len(a.Findings)-MaxListed)
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

// WriteAsks lists the rights that a plugin asks for, and marks those that are new. applies are the grants that it has.
func WriteAsks(w io.Writer, asks []host.Denial, added, applies []string) {
	if len(asks) == 0 {
		fmt.Fprintln(w, "  asks for no rights")
		return
	}
	heading := "asks for these rights; installing it grants none of them:"
	if len(applies) > 0 {
		heading = "asks for these rights, of which it has what these grants give:"
	}
	fmt.Fprintln(w, "  "+heading)
	for _, r := range asks {
		mark := ""
		if slices.Contains(added, r.Right) {
			mark = " (new)"
		}
		fmt.Fprintf(w, "    %s  %q%s\n", r.Right, r.Why, mark)
	}
}

// SignatureText describes a signature in one line.
func SignatureText(s admit.Signer) string {
	switch {
	case s.KeyID == "":
		return "not signed"
	case s.Key == "":
		return "signed with the unknown key " + s.KeyID + ": it counts as unsigned"
	case !s.Trusted:
		return "signed with the key " + s.Key + ", which is not trusted: it counts as unsigned"
	}
	return "signed with the trusted key " + strings.TrimSpace(s.Key+" "+s.Name)
}
