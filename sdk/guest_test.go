package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// guest is a plugin as an author writes it, in an otherwise empty folder.
const guest = `package main

import (
	"errors"
	"runtime"
	"strings"

	sdk "github.com/parley-tools/parley/sdk/go"
)

type Params struct {
	// Text to work on.
	Text string ` + "`json:\"text\"`" + `
	// Times to do it.
	Times int ` + "`json:\"times,omitempty\" default:\"1\"`" + `
}

type Result struct {
	Text string ` + "`json:\"text\"`" + `
	Seen []string ` + "`json:\"seen\"`" + `
}

func Echo(c *sdk.Call, p Params) (Result, error) {
	c.Warn("%s is called by %s", c.Tool, c.Caller)
	return Result{Text: p.Text}, nil
}

// Ask calls another tool while garbage is made, so that what the host writes
// or reads would be overwritten if it were not kept.
func Ask(c *sdk.Call, p Params) (Result, error) {
	var r Result
	for i := range p.Times {
		question := strings.Repeat(p.Text, 1000)
		var answer string
		if err := c.CallTool("other.tool", map[string]string{"q": question}, sdk.Options{Timeout: "1s"}, &answer); err != nil {
			return r, err
		}
		if answer != question {
			return r, errors.New("the answer is damaged")
		}
		if i%10 == 0 {
			runtime.GC()
		}
		_ = make([]byte, 100_000)
	}
	c.Log(sdk.Warn, "asked")
	c.Progress(1, 2, "half")
	secret, err := c.ReadSecret("KEY")
	if err != nil {
		return r, err
	}
	web, err := c.HTTP(sdk.Request{URL: "https://example.com", Body: []byte{0xff}})
	if err != nil {
		return r, err
	}
	r.Text = secret + " " + string(web.Body)
	return r, nil
}

func Denied(c *sdk.Call, p Params) (Result, error) {
	err := c.CallTool("no.tool", nil, sdk.Options{}, nil)
	var refused *sdk.HostError
	if !errors.As(err, &refused) {
		return Result{}, errors.New("not refused")
	}
	return Result{}, sdk.Exit("refused", refused.Message, map[string]string{"code": refused.Code})
}

// Show adds a block of each kind, and fails after that if it is told to.
func Show(c *sdk.Call, p Params) (Result, error) {
	c.Show(sdk.Content{Type: sdk.ContentText, Text: p.Text})
	c.Show(
		sdk.Content{Type: sdk.ContentImage, Data: []byte{0xff, 0}, MIME: "image/png"},
		sdk.Content{Type: sdk.ContentAudio, Data: []byte("RIFF"), MIME: "audio/wav"},
		sdk.Content{Type: sdk.ContentResource, URI: "notes://1", Text: "a note", MIME: "text/plain"},
		sdk.Content{Type: sdk.ContentResource, URI: "notes://2", Data: []byte{0}},
		sdk.Content{Type: sdk.ContentLink, URI: "https://example.com", Text: "Example"},
	)
	if p.Times > 1 {
		return Result{}, errors.New("no")
	}
	return Result{Text: p.Text}, nil
}

func Panic(c *sdk.Call, p Params) (Result, error) { panic("on purpose") }

func init() {
	sdk.Register(sdk.Plugin{
		Name: "guest", Version: "0.1.0", Brief: "A guest",
		ExitCodes: []sdk.ExitCode{{Code: 10, Name: "refused", Meaning: "The host refused"}},
		Tools: []sdk.Definition{
			sdk.Tool("echo", Echo, sdk.Doc{Brief: "Echo", Effect: sdk.Read, Examples: []sdk.Example{
				{Title: "Hello", Kind: sdk.Minimal, Params: Params{Text: "hello"}, Runnable: true},
			}}),
			sdk.Tool("ask", Ask, sdk.Doc{Brief: "Ask", Effect: sdk.Read}),
			sdk.Tool("denied", Denied, sdk.Doc{Brief: "Be denied", Effect: sdk.Read, ExitCodes: []string{"refused"}}),
			sdk.Tool("show", Show, sdk.Doc{Brief: "Show", Effect: sdk.Read}),
			sdk.Tool("panic", Panic, sdk.Doc{Brief: "Panic", Effect: sdk.Read}),
		},
	})
}

func main() { sdk.Main() }
`

// TestGuest builds a plugin in an empty folder from the embedded SDK,
// without a network, and calls it over the ABI.
func TestGuest(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "main.go"), guest)
	write(t, filepath.Join(folder, "go.mod"),
		"module guest\n\ngo 1.26\n\nrequire github.com/parley-tools/parley v0.0.0\n\nreplace "+
			"github.com/parley-tools/parley => ./parley\n")
	write(t, filepath.Join(folder, "parley/go.mod"), "module github.com/parley-tools/parley\n\ngo 1.26\n")
	if err := fs.WalkDir(Go, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source, err := Go.ReadFile(path)
		write(t, filepath.Join(folder, "parley/sdk", path), string(source))
		return err
	}); err != nil {
		t.Fatal(err)
	}

	manifest, hints := run(t, folder, nil, "run", ".")
	for _, part := range []string{
		`"kind": "parley/1"`,
		`{"type":"string","description":"Text to work on."}`,
		`"result": {"text":"hello","seen":[]}`,
	} {
		if !strings.Contains(manifest, part) {
			t.Errorf("the manifest does not contain %s:\n%s", part, manifest)
		}
	}
	if !strings.Contains(hints, "Result.Seen has no doc comment") {
		t.Errorf("hints: %s", hints)
	}

	run(t, folder, []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared",
		"-ldflags=-s -w", "-o", "guest.wasm", ".")
	wasm, err := os.ReadFile(filepath.Join(folder, "guest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(wasm, []byte("go/parser")) {
		t.Error("the wasm contains the parser of its own source")
	}
	h := newTestHost(t, wasm)
	long := strings.Repeat("long ", 200_000)
	for _, c := range []struct{ tool, params, want string }{
		{"echo", `{"text":"<é>"}`, `{"ok":true,"result":{"text":"<é>","seen":[]},"warnings":["echo is called by cli"]}`},
		{"echo", `{"text":"` + long + `"}`, `{"ok":true,"result":{"text":"` + long +
			`","seen":[]},"warnings":["echo is called by cli"]}`},
		{"echo", `{"text":1}`, `{"ok":false,"invalid":[{"pointer":"/text","expected":"a value that fits string","provided":"number 1"}]}`},
		{"ask", `{"text":"abc","times":200}`, `{"ok":true,"result":{"text":"s3cret hey","seen":[]}}`},
		{"denied", `{"text":""}`, `{"ok":false,"exit":10,"message":"not granted","details":{"code":"denied"}}`},
		{"show", `{"text":"<é>"}`, `{"ok":true,"result":{"text":"<é>","seen":[]},"content":[` +
			`{"type":"text","text":"<é>"},{"type":"image","data":"/wA=","mime":"image/png"},` +
			`{"type":"audio","data":"UklGRg==","mime":"audio/wav"},` +
			`{"type":"resource","text":"a note","mime":"text/plain","uri":"notes://1"},` +
			`{"type":"resource","data":"AA==","uri":"notes://2"},` +
			`{"type":"link","text":"Example","uri":"https://example.com"}]}`},
		{"show", `{"text":"a","times":2}`, `{"ok":false,"exit":1,"message":"no"}`},
		{"panic", `{"text":""}`, `{"ok":false,"exit":1,"message":"panic: on purpose"}`},
		{"nosuch", `{}`, `{"ok":false,"exit":1,"message":"plugin guest has no tool \"nosuch\""}`},
	} {
		if got := h.call(t, c.tool, c.params); got != c.want {
			t.Errorf("%s %.60s:\n%.300s\nwant\n%.300s", c.tool, c.params, got, c.want)
		}
	}
	want := "log 2 asked; progress 1 2 half; log 3 panic in main.Panic (main.go:"
	if got := strings.Join(h.received, "; "); !strings.HasPrefix(got, want) {
		t.Errorf("the host got %q, want %q and more", got, want)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, folder string, env []string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command("go", args...)
	c.Dir, c.Stdout, c.Stderr = folder, &out, &errs
	c.Env = append(append(os.Environ(), "GOFLAGS=", "GOWASM=", "GOWORK=off", "GOPROXY=off"), env...)
	if err := c.Run(); err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, errs.String())
	}
	return out.String(), errs.String()
}

// testHost is the smallest host that the ABI allows.
type testHost struct {
	runtime  wazero.Runtime
	module   wazero.CompiledModule
	received []string
}

func newTestHost(t *testing.T, wasm []byte) *testHost {
	ctx := context.Background()
	h := &testHost{runtime: wazero.NewRuntime(ctx)}
	t.Cleanup(func() { h.runtime.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, h.runtime)
	answer := func(f func(question string) string) func(context.Context, api.Module, uint32, uint32) uint64 {
		return func(ctx context.Context, m api.Module, ptr, n uint32) uint64 {
			return writeBlock(ctx, m, f(textAt(m, ptr, n)))
		}
	}
	_, err := h.runtime.NewHostModuleBuilder("parley").
		NewFunctionBuilder().WithFunc(answer(func(question string) string {
		var q struct {
			Tool   string
			Params struct{ Q string }
		}
		if json.Unmarshal([]byte(question), &q) != nil || q.Tool != "other.tool" {
			return `{"ok":false,"error":{"code":"denied","exit_code":82,"message":"not granted"}}`
		}
		raw, _ := json.Marshal(q.Params.Q)
		return `{"ok":true,"result":` + string(raw) + `}`
	})).Export("call_tool").
		NewFunctionBuilder().WithFunc(answer(func(question string) string {
		if question != `{"method":"GET","url":"https://example.com","body_base64":"/w=="}` {
			return `{"ok":false,"error":{"code":"internal","exit_code":110,"message":"asked ` + fmt.Sprintf("%q", question)[1:] +
				`}}`
		}
		return `{"ok":true,"result":{"status":200,"headers":[["a","b"]],"body":"hey"}}`
	})).Export("http_request").
		NewFunctionBuilder().WithFunc(answer(func(string) string { return `{"ok":true,"result":"s3cret"}` })).
		Export("read_secret").
		NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, level int32, ptr, n uint32) {
		h.received = append(h.received, fmt.Sprint("log ", level, " ", textAt(m, ptr, n)))
	}).Export("log").
		NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, done, total float64, ptr, n uint32) {
		h.received = append(h.received, fmt.Sprint("progress ", done, " ", total, " ", textAt(m, ptr, n)))
	}).Export("progress").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if h.module, err = h.runtime.CompileModule(ctx, wasm); err != nil {
		t.Fatal(err)
	}
	return h
}

// call runs one tool in a new instance.
func (h *testHost) call(t *testing.T, tool, params string) string {
	t.Helper()
	ctx := context.Background()
	m, err := h.runtime.InstantiateModule(ctx, h.module,
		wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(ctx)
	at := writeBlock(ctx, m, `{"tool":"`+tool+`","params":`+params+
		`,"call_id":"1","caller":"cli","host":"0.1.0","deadline_ms":1000,"granted":{}}`)
	response, err := m.ExportedFunction("parley_call").Call(ctx, at>>32, at&0xffffffff)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return textAt(m, uint32(response[0]>>32), uint32(response[0]))
}

func writeBlock(ctx context.Context, m api.Module, s string) uint64 {
	at, err := m.ExportedFunction("parley_alloc").Call(ctx, uint64(len(s)))
	if err != nil || !m.Memory().WriteString(uint32(at[0]), s) {
		panic(fmt.Sprint("parley_alloc: ", at, err))
	}
	return at[0]<<32 | uint64(len(s))
}

func textAt(m api.Module, ptr, n uint32) string {
	b, ok := m.Memory().Read(ptr, n)
	if !ok {
		return "outside memory"
	}
	return string(b)
}
