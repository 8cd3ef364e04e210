package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/cmd/parley/internal/command/commandtest"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/session"
	"github.com/parley-tools/parley/manifest"
)

// home is the data folder of the tests that call plugins, so that these are compiled once.
var home string

func TestMain(m *testing.M) {
	parley.Child()
	var err error
	if home, err = os.MkdirTemp("", "parley-tools-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// TestCallToFile: the whole result is written to a file, which the data of the answer describes.
func TestCallToFile(t *testing.T) {
	d, path := commandtest.New(t, home, ""), filepath.Join(t.TempDir(), "out.json")
	answer, err := callTool(t.Context(), d, CallOptions{
		Tool: "text.hash", Params: `{"text":"hello"}`, Out: path, MaxBytes: 5, Flags: &pflag.FlagSet{},
	})
	if err != nil {
		t.Fatal(err)
	}
	var file session.File
	content, err := os.ReadFile(path)
	if json.Unmarshal(answer.Data, &file) != nil || err != nil || file.Out != path || file.Bytes != int64(len(content)) ||
		file.MIME != "application/json" || !json.Valid(content) {
		t.Errorf("%s describes %q, %v", answer.Data, content, err)
	}
}

// TestCallErrors: a call that was made has an answer, even if it failed; invalid options have none.
func TestCallErrors(t *testing.T) {
	d := commandtest.New(t, t.TempDir(), "")
	for _, c := range []struct {
		o    CallOptions
		code host.Code
		made bool
	}{
		{CallOptions{Tool: "text.nope"}, host.NotFound, true},
		{CallOptions{Tool: "text.hash"}, host.InvalidArgs, true},
		{CallOptions{Tool: "text.hash", Set: []string{"=x"}}, host.InvalidArgs, true},
		{CallOptions{Tool: "text.hash", Set: []string{"text=a"}, JQ: ".["}, host.InvalidArgs, true},
		{CallOptions{Tool: "text.hash", Drain: true}, host.InvalidArgs, false},
		{CallOptions{Tool: "text.hash", Isolate: "moon"}, host.InvalidArgs, false},
	} {
		c.o.Flags = &pflag.FlagSet{}
		answer, err := callTool(t.Context(), d, c.o)
		if host.AsError(err).Code != c.code || (answer != nil) != c.made || answer != nil && answer.CallID == "" {
			t.Errorf("%+v: %v, %+v", c.o, err, answer)
		}
	}
}

// TestBatch: calls run in order, refer to earlier results, and each has a reply with its id.
func TestBatch(t *testing.T) {
	const calls = `{"id":"a","tool":"text.hash","params":{"text":"hello","algorithm":"md5"}}

{"tool":"text.count","params":{"text":"${a.hex}"}}
{"tool":"text.nope"}
{"id":"b","tool":"text.hash","params":{"text":"never"}}
`
	for goOn, want := range map[bool]string{false: `"a" 3 4`, true: `"a" 3 4 "b"`} {
		var out bytes.Buffer
		app := commandtest.New(t, home, calls)
		app.Out = &out
		err := callLines(t.Context(), app, batchOptions{Path: "-", ContinueOnError: goOn})
		var ids []string
		for line := range bytes.Lines(out.Bytes()) {
			var reply struct{ ID json.RawMessage }
			_ = json.Unmarshal(line, &reply)
			ids = append(ids, string(reply.ID))
		}
		status, failed := errors.AsType[*command.ExitStatus](err)
		code := host.Errorf(host.NotFound, "").ExitCode()
		if got := strings.Join(ids, " "); !failed || status.Code != code || got != want {
			t.Errorf("continue %v: failed with %v, replies %s, want %s", goOn, err, got, want)
		}
	}
	err := callLines(t.Context(), commandtest.New(t, home, ""), batchOptions{Path: "missing"})
	if host.AsError(err).Code != host.InvalidArgs {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// TestBatchReply checks that a line of a batch has no fields that say nothing.
func TestBatchReply(t *testing.T) {
	meta := &command.Meta{Tool: "text.hash", CallID: "c"}
	for want, env := range map[string]*command.Envelope{
		`{"id":1,"ok":true}`: {OK: true, Data: []byte(` {}`), Warnings: []string{},
			Next: []string{}, Meta: meta},
		`{"id":1,"ok":true,"data":[]}`:                     {OK: true, Data: []byte(`[]`), Meta: meta},
		`{"id":1,"ok":true,"data":1,"warnings":["w"]}`:     {OK: true, Data: []byte(`1`), Warnings: []string{"w"}},
		`{"id":1,"ok":false,"next":["n"],"meta":{"ms":1}}`: {Next: []string{"n"}, Meta: &command.Meta{MS: 1}},
	} {
		got, err := manifest.Marshal(newBatchReply(json.RawMessage("1"), env))
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}
