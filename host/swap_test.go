package host_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-tools/parley/host"
)

// TestSwapForgetsWhatIsCompiledIn holds that a new catalog brings its own documentation and schemas, also of a
// provider that has no digest to tell it from the one before.
func TestSwapForgetsWhatIsCompiledIn(t *testing.T) {
	h := newHost(t, host.Config{}, newFake(t, shop, nil).builtin())
	if _, err := h.Describe(t.Context(), "cli", "", "shop.echo", 2); err != nil {
		t.Fatal(err)
	}
	if a := call(t, h, "shop.echo", `{"a":1}`); a.Err != nil {
		t.Fatal(a.Err)
	}
	newer := newFake(t, shop, nil).builtin()
	tool := newer.manifest.Tool("echo")
	tool.Docs.Brief, tool.Params = "Say it twice", json.RawMessage(`{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}`)
	h.Swap(catalogOf(t, newer))
	if d, err := h.Describe(t.Context(), "cli", "", "shop.echo", 2); err != nil || d.Brief != "Say it twice" {
		t.Errorf("got %+v, %v", d, err)
	}
	failsWith(t, call(t, h, "shop.echo", `{"a":1}`), host.InvalidArgs)
}
