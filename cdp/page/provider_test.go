package page

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cdp"
	"github.com/parley-tools/parley/cdp/internal/keeper/api"
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
	if !bytes.Equal(built, segment) {
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

// TestStepsAreOwn offers verbs of this plugin after each error of a verb, and none of the plugin cdp.
func TestStepsAreOwn(t *testing.T) {
	p := New(cdp.New(cdp.Config{RunDir: t.TempDir()}))
	check := func(tool, after string, steps ...host.Step) {
		t.Helper()
		for _, s := range steps {
			if name, isChrome := strings.CutPrefix(s.Tool, cdp.Name+"."); isChrome && name != "status" {
				t.Errorf("%s offers %s after %s", tool, s.Tool, after)
			}
		}
	}
	codes := append(strings.Fields(api.CodeChromeLaunch+" "+api.CodeChromeConnection+" "+api.CodeTimeout),
		api.CodeTargetCrashed, api.CodeBusy,
		api.CodeLimitExceeded, api.CodeNotFound, api.CodeNavigationFailed, api.CodeProtocolError,
		api.CodeInvalidArgs, api.CodeUnavailable, api.CodeConfigError, api.CodeDenied, api.CodeExit, api.CodeInternal)
	offered := 0
	for _, tool := range tools.Names() {
		job := host.Job{Tool: tool, Params: []byte("{}")}
		for _, code := range codes {
			for _, noPage := range []bool{false, true} {
				k := &api.Error{Code: code, Message: "net::ERR_ABORTED", Exit: "no_match", NoPage: noPage, Bytes: 1,
					Dialog: &api.Dialog{}, Denied: []host.Denial{{Right: "x"}}}
				e := host.AsError((&invocation{Request: &host.Request{Job: job}, provider: p}).hostError(k))
				offered += len(e.Steps)
				check(tool, code, e.Steps...)
			}
		}
		if step := p.missingPage(t.Context(), &job); step != nil {
			check(tool, "a look for its page", *step)
		}
	}
	if offered < 10*len(tools.Names()) {
		t.Errorf("%d steps were offered", offered)
	}
}
