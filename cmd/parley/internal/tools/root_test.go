package tools

import (
	"context"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
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
		app:   app,
		words: []string{"cdp"}, given: []string{"jq", "listen", "max", "timeout", "trigger", "until"}, tier: 2,
		listen: []string{"Network.*", "Page.*"}, until: "Page.loadEventFired", max: 10, trigger: "Page.reload",
		CallOptions: CallOptions{Options: host.Options{JQ: ".method", Timeout: 20 * time.Second}},
	}
	if got := *opts; !sameOptions(&got, want) {
		t.Errorf("\n got %+v\nwant %+v", opts, want)
	}
	if opts.IsCall() || opts.FirstOf("all", "max") != "max" || opts.Check() != nil {
		t.Errorf("a stream counts as a call, lost --max, or was refused: %v", opts.Check())
	}
}

// sameOptions compares options of the root. The order in which options were given does not matter.
func sameOptions(got, want *RootOptions) bool {
	for _, name := range want.given {
		if !got.has(name) {
			return false
		}
	}
	same := len(got.given) == len(want.given)
	got.given, want.given, got.flags = nil, nil, nil
	return same && reflect.DeepEqual(got, want)
}
