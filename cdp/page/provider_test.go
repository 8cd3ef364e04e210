package page

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/providertest"
)

var update = flag.Bool("update", false, "write generated files")

func TestSegment(t *testing.T) {
	built := New(cdp.New(cdp.Config{})).buildSegment()
	if *update {
		if err := os.WriteFile("segment", built, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(built, shippedSegment) {
		t.Fatal("segment differs from what the tools generate; run go generate ./cdp/page")
	}
}

func TestContract(t *testing.T) {
	providertest.Run(t, New(cdp.New(cdp.Config{RunDir: t.TempDir()})), providertest.Options{
		Calls: []providertest.Case{
			{Tool: "click", Params: `{"element":"Go"}`, Code: host.ChromeConnection},
			{Tool: "do", Params: `{"steps":[{"tool":"click","params":{"element":"Go"}}]}`, Code: host.ChromeConnection},
			{Tool: "do", Params: `{"steps":[]}`, Want: `{"done":0}`},             // which a caller that skips validation can send
			{Tool: "state", Params: `{"action":"list"}`, Code: host.Unavailable}, // it has no folder
			{Tool: "state", Params: `{"action":"load"}`, Code: host.InvalidArgs},
		},
	})
}
