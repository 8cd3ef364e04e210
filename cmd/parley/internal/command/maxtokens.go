package command

import (
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// AddMaxTokens adds the option of what informs about tools.
func AddMaxTokens(a *App, flags *pflag.FlagSet) {
	flags.IntVar(&a.MaxTokens, "max-tokens", 0, "list, describe, search: leave out what does not fit")
}

// CheckMaxTokens refuses a limit that nothing can satisfy.
func CheckMaxTokens(a *App, flags *pflag.FlagSet) error {
	if flags.Changed("max-tokens") && a.MaxTokens < 1 {
		return host.Errorf(host.InvalidArgs, "--max-tokens must be at least 1, got %d", a.MaxTokens).
			WithNext("--max-tokens 200, or leave it out")
	}
	return nil
}

// Fits reports whether what a command prints stays within --max-tokens: the envelope with --json, the text and the
// warnings otherwise.
func Fits(a *App, data any, next, warnings []string, text func(w io.Writer)) bool {
	var b strings.Builder
	if a.JSON {
		raw, err := manifest.Marshal(data)
		if err != nil {
			return true // printing reports the error
		}
		env := &Envelope{OK: true, Data: raw, Warnings: append([]string{}, warnings...), Next: next}
		_ = WriteJSON(&b, env, a.OutTTY)
	} else {
		b.WriteString(strings.Join(warnings, "\n"))
		text(&b)
	}
	return manifest.Tokens(b.String()) <= a.MaxTokens
}

// Reduction is a part of a list that can be left out, such as the last line. Remove reports false if there is nothing
// left to remove; otherwise the reduction may be applied again.
type Reduction struct {
	Name   string
	Remove func() bool
}

// PrintWithin prints a list. With --max-tokens it leaves out parts, in their order, until the rest fits, and says what
// is missing.
func (a *App) PrintWithin(data any, next []string, text func(w io.Writer), parts ...Reduction) error {
	var warnings, left []string
	for a.MaxTokens > 0 && len(parts) > 0 && !Fits(a, data, next, warnings, text) {
		if !parts[0].Remove() {
			parts = parts[1:]
			continue
		}
		if len(left) == 0 || left[len(left)-1] != parts[0].Name {
			left = append(left, parts[0].Name)
		}
		warnings = []string{"left out to stay within --max-tokens: " + strings.Join(left, ", ")}
	}
	raw, err := manifest.Marshal(data)
	if err != nil {
		return err
	}
	env := &Envelope{
		OK: true, Data: raw, Warnings: append([]string{}, warnings...), Next: append([]string{}, next...),
	}
	return a.PrintEnvelope(env, text)
}

// WithoutDetails leaves out what describes the tools of a list, so that their names stay.
func WithoutDetails(tools []host.Line) Reduction {
	done := false
	return Reduction{"signatures and briefs", func() bool {
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

// WithoutLast leaves out the last items of a list, but not the first one.
func WithoutLast[T any](name string, items *[]T) Reduction {
	return Reduction{name, func() bool {
		if len(*items) < 2 {
			return false
		}
		*items = (*items)[:len(*items)-1]
		return true
	}}
}
