package cli

import (
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// addMaxTokens adds the option of what informs about tools.
func (a *App) addMaxTokens(flags *pflag.FlagSet) {
	flags.IntVar(&a.maxTokens, "max-tokens", 0, "list, describe, search: leave out what does not fit")
}

// checkMaxTokens refuses a limit that nothing can satisfy.
func (a *App) checkMaxTokens(flags *pflag.FlagSet) error {
	if flags.Changed("max-tokens") && a.maxTokens < 1 {
		return host.Errorf(host.InvalidArgs, "--max-tokens must be at least 1, got %d", a.maxTokens).
			WithNext("--max-tokens 200, or leave it out")
	}
	return nil
}

// fits reports whether what a command prints stays within --max-tokens: the envelope with --json, the text and the
// warnings otherwise.
func (a *App) fits(data any, next, warnings []string, text func(w io.Writer)) bool {
	var b strings.Builder
	if a.json {
		raw, err := manifest.Marshal(data)
		if err != nil {
			return true // printing reports the error
		}
		env := &command.Envelope{OK: true, Data: raw, Warnings: append([]string{}, warnings...), Next: next}
		_ = writeJSON(&b, env, a.OutTTY)
	} else {
		b.WriteString(strings.Join(warnings, "\n"))
		text(&b)
	}
	return manifest.Tokens(b.String()) <= a.maxTokens
}

// reduction is a part of a list that can be left out, such as the last line. Remove reports false if there is nothing
// left to remove; otherwise the reduction may be applied again.
type reduction struct {
	name   string
	remove func() bool
}

// printWithin prints a list. With --max-tokens it leaves out parts, in their order, until the rest fits, and says what
// is missing.
func (a *App) printWithin(data any, next []string, text func(w io.Writer), parts ...reduction) error {
	var warnings, left []string
	for a.maxTokens > 0 && len(parts) > 0 && !a.fits(data, next, warnings, text) {
		if !parts[0].remove() {
			parts = parts[1:]
			continue
		}
		if len(left) == 0 || left[len(left)-1] != parts[0].name {
			left = append(left, parts[0].name)
		}
		warnings = []string{"left out to stay within --max-tokens: " + strings.Join(left, ", ")}
	}
	raw, err := manifest.Marshal(data)
	if err != nil {
		return err
	}
	env := &command.Envelope{
		OK: true, Data: raw, Warnings: append([]string{}, warnings...), Next: append([]string{}, next...),
	}
	return a.printEnvelope(env, text)
}

// withoutDetails leaves out what describes the tools of a list, so that their names stay.
func withoutDetails(tools []host.Line) reduction {
	done := false
	return reduction{"signatures and briefs", func() bool {
		if done {
			return false
		}
		for i := range tools {
			tools[i].Signature, tools[i].Brief = "", ""
		}
		done = true
		return true
	}}
}

// withoutLast leaves out the last items of a list, but not the first one.
func withoutLast[T any](name string, items *[]T) reduction {
	return reduction{name, func() bool {
		if len(*items) < 2 {
			return false
		}
		*items = (*items)[:len(*items)-1]
		return true
	}}
}
