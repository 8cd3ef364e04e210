package command

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

type embeddedOptions struct {
	Approval
	Files []string `flag:"file" usage:"a file; repeatable"`
}

type madeOptions struct {
	Flags  *pflag.FlagSet
	Name   string   `word:""`
	Others []string `word:""`
	Text   string   `flag:"text" default:"a" usage:"a text"`
	Count  int      `flag:"count" default:"7" usage:"how many"`
	Seed   uint64   `flag:"seed" usage:"a seed"`
	Cost   float64  `flag:"cost" usage:"a cost"`
	After  time.Duration
	Wait   time.Duration `flag:"wait" usage:"how long"`
	On     bool          `flag:"on" usage:"a switch"`
	embeddedOptions
}

// TestCommandOptions fills options from flags and words: given ones, and their defaults.
func TestCommandOptions(t *testing.T) {
	for _, c := range []struct {
		line []string
		want madeOptions
	}{
		{[]string{}, madeOptions{Text: "a", Count: 7}},
		{[]string{"one", "--text", "", "two", "three", "--count=2", "--seed", "3", "--cost", "0.5", "--wait", "1s", "--on",
			"--yes", "--file", "f", "--file", "g"},
			madeOptions{Name: "one", Others: []string{"two", "three"}, Count: 2, Seed: 3, Cost: 0.5, Wait: time.Second, On: true,
				embeddedOptions: embeddedOptions{Approval{true}, []string{"f", "g"}}}},
	} {
		var got madeOptions
		run := func(_ context.Context, _ *App, opts *madeOptions) error {
			got = *opts
			return nil
		}
		cmd := (&Command[*madeOptions]{Use: "made [NAME...]", Run: run}).New(&App{})
		var names []string
		cmd.Flags().SortFlags = false
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if want := []string{"text", "count", "seed", "cost", "wait", "on", "yes", "file"}; !reflect.DeepEqual(names, want) {
			t.Errorf("the options are %q, want %q", names, want)
		}
		cmd.SetArgs(c.line)
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		if got.Flags != cmd.Flags() || got.Flags.Changed("text") != (len(c.line) > 0) {
			t.Errorf("%q: the flags are not those of the command", c.line)
		}
		if got.Flags = nil; len(got.Others) == 0 {
			got.Others = nil
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q:\n got %+v\nwant %+v", c.line, got, c.want)
		}
	}
}
