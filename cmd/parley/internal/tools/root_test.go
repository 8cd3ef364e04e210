package tools

import (
	"context"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

// TestRootOptions checks the options of the root, whose flags are those of several modes.
func TestRootOptions(t *testing.T) {
	app := command.NewApp(&command.Streams{Out: io.Discard, Err: io.Discard, Env: func(string) string { return "" }}, nil)
	var opts *RootOptions
	root := NewToolCommand(app, func(_ context.Context, o *RootOptions) error {
		opts = o
		return nil
	})
	root.SetArgs([]string{"cdp", "--listen", "Network.*", "--listen", "Page.*",
		"--until", "Page.loadEventFired", "--max", "10", "--trigger", "Page.reload", "--timeout", "20s", "--jq", ".method"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := &RootOptions{
		app:  app,
		Line: []string{"cdp"}, Tier: 2,
		Listen: []string{"Network.*", "Page.*"}, Until: "Page.loadEventFired", Max: 10, Trigger: "Page.reload",
		CallOptions: CallOptions{JQ: ".method", Timeout: 20 * time.Second},
	}
	given := 0
	opts.Flags.Visit(func(*pflag.Flag) { given++ })
	got := *opts
	if got.Flags = nil; given != 6 || !reflect.DeepEqual(&got, want) {
		t.Errorf("%d given\n got %+v\nwant %+v", given, opts, want)
	}
	if opts.IsCall() || opts.FirstOf("all", "max") != "max" || opts.Check() != nil {
		t.Errorf("a stream counts as a call, lost --max, or was refused: %v", opts.Check())
	}
}
