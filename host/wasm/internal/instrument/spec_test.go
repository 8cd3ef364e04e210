package instrument_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// specCommand is a command in a script of the official WebAssembly test suite, as wast2json writes it.
type specCommand struct {
	Type     string `json:"type"`
	Line     int    `json:"line"`
	Filename string `json:"filename"`
	Action   struct {
		Type, Module, Field string
		Args                []struct{ Value any }
	} `json:"action"`
}

// TestSpec runs the official WebAssembly 2.0 test suite and that of extended-const, which are part of wazero's module,
// with each module as it is and instrumented. Results and traps must be equal, and invalid modules must stay invalid.
// PARLEY_HAMMER=1 runs all scripts instead of every fourth of the former.
func TestSpec(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	suites := filepath.Join(strings.TrimSpace(string(out)), "internal/integration_test/spectest")
	files, _ := filepath.Glob(filepath.Join(suites, "v2/testdata/*.json"))
	extended, _ := filepath.Glob(filepath.Join(suites, "extended-const/testdata/*.json"))
	if err != nil || len(files) == 0 || len(extended) == 0 {
		t.Skip("wazero's module with its tests is not in the module cache")
	}
	s := &specRun{t: t}
	for i, file := range slices.Concat(files, extended) {
		if i%4 != 0 && i < len(files) && !hammer {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var script struct {
			Commands []specCommand `json:"commands"`
		}
		if err := json.Unmarshal(data, &script); err != nil {
			t.Fatal(err)
		}
		s.dir, s.file = filepath.Split(file)
		for _, c := range script.Commands {
			s.command(c)
		}
		s.close()
	}
	t.Logf("%d files, %d modules compared, %d not accepted by the gate, %d calls compared", len(files), s.modules,
		s.refused, s.calls)
	if s.calls < 4_000 || hammer && s.calls < 40_000 {
		t.Errorf("only %d calls were compared", s.calls)
	}
}

type specRun struct {
	t                       *testing.T
	dir, file               string
	modules, refused, calls int

	runtimes         []wazero.Runtime
	original, result api.Module // nil if there is none to call
}

func (s *specRun) close() {
	for _, r := range s.runtimes {
		_ = r.Close(context.Background())
	}
	s.runtimes, s.original, s.result = nil, nil, nil
}

func (s *specRun) command(c specCommand) {
	switch c.Type {
	case "module", "assert_invalid", "assert_malformed":
		if !strings.HasSuffix(c.Filename, ".wasm") {
			return
		}
		wasm, err := os.ReadFile(filepath.Join(s.dir, c.Filename))
		if err != nil {
			s.t.Fatal(err)
		}
		s.module(c, wasm)
	case "assert_return", "assert_trap", "assert_exhaustion", "action":
		if s.original != nil && c.Action.Type == "invoke" && c.Action.Module == "" {
			s.call(c)
		}
	}
}

func (s *specRun) module(c specCommand, wasm []byte) {
	s.close()
	m, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: 1 << 16})
	if err != nil {
		if c.Type == "module" {
			s.refused++ // the module imports memories, tables or globals
		}
		return
	}
	gated, err := instrument.Rewrite(wasm, instrument.Config{MaxPages: 1 << 16, Plain: true})
	if err != nil {
		s.t.Fatal(err)
	}
	before, errBefore := s.make(gated.Wasm)
	after, errAfter := s.make(m.Wasm)
	s.modules++
	if (errBefore == nil) != (errAfter == nil) {
		s.t.Errorf("%s:%d: the original returns %v and the metered module %v", s.file, c.Line, errBefore, errAfter)
	}
	if errBefore == nil && errAfter == nil {
		s.original, s.result = before, after
	}
}

func (s *specRun) make(wasm []byte) (api.Module, error) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesExtendedConst))
	s.runtimes = append(s.runtimes, r)
	nothing := api.GoFunc(func(context.Context, []uint64) {})
	b := r.NewHostModuleBuilder("spectest")
	i32, i64, f32, f64 := api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeF32, api.ValueTypeF64
	for name, params := range map[string][]api.ValueType{
		"print": nil, "print_i32": {i32}, "print_i64": {i64}, "print_f32": {f32}, "print_f64": {f64},
		"print_i32_f32": {i32, f32}, "print_f64_f64": {f64, f64},
	} {
		b = b.NewFunctionBuilder().WithGoFunction(nothing, params, nil).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		s.t.Fatal(err)
	}
	if _, err := r.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder().WithGoFunction(nothing, nil,
		nil).Export(instrument.YieldName).Instantiate(ctx); err != nil {
		s.t.Fatal(err)
	}
	return r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(""))
}

func (s *specRun) call(c specCommand) {
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, s.arg(a.Value)...)
	}
	ctx := context.Background()
	s.calls++
	want, errWant := s.original.ExportedFunction(c.Action.Field).Call(ctx, args...)
	got, errGot := s.result.ExportedFunction(c.Action.Field).Call(ctx, args...)
	if innermostLoop(errWant) != innermostLoop(errGot) {
		s.t.Errorf("%s:%d: %s returns the error %q, and %q when metered", s.file, c.Line, c.Action.Field,
			innermostLoop(errWant), innermostLoop(errGot))
	}
	// References are addresses, which differ between instances.
	if !slices.Equal(want, got) && !strings.HasPrefix(s.file, "ref_") {
		s.t.Errorf("%s:%d: %s returns %v, and %v when metered", s.file, c.Line, c.Action.Field, want, got)
	}
}

func (s *specRun) arg(v any) []uint64 {
	lanes, isVector := v.([]any)
	if !isVector {
		text := fmt.Sprint(v)
		if text == "null" {
			return []uint64{0}
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		return []uint64{n}
	}
	var bits bytes.Buffer
	for _, lane := range lanes {
		n, _ := strconv.ParseUint(fmt.Sprint(lane), 10, 64) // "nan:canonical" counts as 0
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], n)
		bits.Write(b[:16/len(lanes)])
	}
	return []uint64{binary.LittleEndian.Uint64(bits.Bytes()), binary.LittleEndian.Uint64(bits.Bytes()[8:])}
}

func innermostLoop(err error) string {
	if err == nil {
		return ""
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
