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
	"github.com/parley-tools/parley/host/grant"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/lint"
)

// admitted shows the report on a plugin that is loaded or refused: on stderr, or with --json in the envelope.
func admitted(a *App, report *admit.Report) {
	if a.JSON {
		a.said.mu.Lock()
		defer a.said.mu.Unlock()
		a.said.admissions = append(a.said.admissions, report)
		return
	}
	did, when := "Loaded", ", for the first time"
	if refusals := report.Errors(); len(refusals) > 0 {
		did, when = "Read", ""
		rest := *report // the error that follows lists the refusals
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

// WriteAdmission writes a report, except for signature and rights, which the lines above it have.
func WriteAdmission(w io.Writer, a *admit.Report) {
	var effects []string
	for _, effect := range []string{manifest.EffectRead, manifest.EffectWrite, manifest.EffectDestructive} {
		if names := a.Effects[effect]; len(names) > 0 {
			which := When(effect != manifest.EffectRead, " ("+manifest.Clip(strings.Join(names, ", "), 80)+")")
			effects = append(effects, fmt.Sprintf("%d %s%s", len(names), effect, which))
		}
	}
	owner := a.Owner
	if owner != host.OwnerShipped && owner != host.OwnerUnsigned {
		owner = "its signer"
	}
	fmt.Fprintf(w, "  effects: %s; owner: %s; %d bytes", strings.Join(effects, ", "), owner, a.Bytes)
	PrintIf(w, a.CompileMS > 0, ", compiled in %d ms", a.CompileMS)
	fmt.Fprintln(w)
	if len(a.Examples) > 0 {
		fmt.Fprintf(w, "  examples: %d of %d are verified\n", a.Verified, len(a.Examples))
		var differ, notRun []string
		reasons := map[string]int{}
		for _, r := range a.Examples {
			switch r.Status {
			case admit.ExampleNotRun:
				reasons[r.Reason]++
			case admit.ExampleDiffers:
				differ = append(differ, fmt.Sprintf("differs: %s %q: %s", r.Tool, r.Title, r.Reason))
			}
		}
		for _, reason := range slices.Sorted(maps.Keys(reasons)) {
			notRun = append(notRun, fmt.Sprintf("%d not run: %s", reasons[reason], reason))
		}
		WriteListed(w, "    ", notRun, "")
		WriteListed(w, "    ", differ, "")
	}
	var findings []string
	for _, f := range a.Findings {
		mark := When(f.Severity == lint.Error && slices.Contains(a.Accepted, f.Rule), ", accepted")
		text := fmt.Sprintf("%s%s %s: %s: %s", f.Severity, mark, f.Rule, cmp.Or(f.Pointer, "/"), f.Message)
		findings = append(findings, text)
	}
	WriteListed(w, "  ", findings, "--json lists them all")
}

// WriteListed writes the first lines of a list, each after an indent. Unless how is "", it adds how to see the
// others.
func WriteListed(w io.Writer, indent string, lines []string, how string) {
	const most = 10
	WriteLines(w, indent, lines[:min(most, len(lines))])
	if more := len(lines) - most; more > 0 && how != "" {
		fmt.Fprintf(w, "%sand %d more; %s\n", indent, more, how)
	}
}

// WriteAsks lists the rights that a plugin requests, and marks the new ones. applies are the grants that it has.
func WriteAsks(w io.Writer, asks []grant.Denial, added, applies []string) {
	if len(asks) == 0 {
		fmt.Fprintln(w, "  asks for no rights")
		return
	}
	heading := Either(len(applies) > 0, "asks for these rights; these grants give it some of them:",
		"asks for these rights; installing it grants none of them:")
	fmt.Fprintln(w, "  "+heading)
	for _, r := range asks {
		fmt.Fprintf(w, "    %s  %q%s\n", r.Right, r.Why, When(slices.Contains(added, r.Right), " (new)"))
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
