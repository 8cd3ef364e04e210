package instrument_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// TestImaged: an instance of an imaged module begins with the globals and the size of memory of another instance.
func TestImaged(t *testing.T) {
	source, err := os.ReadFile("../../testdata/globals.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m, err := instrument.Rewrite(source, instrument.Config{MaxPages: 16})
	if err != nil || !m.Imageable {
		t.Fatalf("%+v, %v", m, err)
	}
	exposed, names := instrument.ExportGlobals(m.Wasm)
	first := instantiate(t, exposed)
	if slices.Contains(names, "global 0") {
		t.Errorf("%q is an export of the module itself", names)
	}
	if _, err := first.ExportedFunction("set").Call(context.Background()); err != nil {
		t.Fatal(err)
	}
	var globals []uint64
	for _, name := range names {
		globals = append(globals, first.ExportedGlobal(name).Get())
	}
	data, _ := first.Memory().Read(0, first.Memory().Size())
	want := get(t, first)

	second := instantiate(t, instrument.Imaged(m.Wasm, globals, 3))
	if text, _ := second.Memory().Read(0, 9); string(text) == "beginning" {
		t.Error("data is copied into the memory of an image")
	}
	second.Memory().Write(0, data)
	if got := get(t, second); !slices.Equal(got, want) {
		t.Errorf("the state is %x, want %x", got, want)
	}
}

func get(t *testing.T, m api.Module) []uint64 {
	t.Helper()
	values, err := m.ExportedFunction("get").Call(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(values)
}

func instantiate(t *testing.T, wasm []byte) api.Module {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { r.Close(ctx) })
	if _, err := r.NewHostModuleBuilder(instrument.YieldModule).NewFunctionBuilder().WithFunc(func() {}).
		Export(instrument.YieldName).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestImageable: an instance with state outside memory and numeric globals, or that does something when it is
// instantiated, cannot be imaged.
func TestImageable(t *testing.T) {
	types, funcs, memory := []byte{1, 1, 0x60, 0, 0}, []byte{3, 1, 0}, []byte{5, 1, 0, 1}
	table, element := []byte{4, 1, 0x70, 0, 1}, []byte{9, 1, 1, 0, 1, 0}
	global := func(kind, mutable byte, value ...byte) []byte { return append([]byte{6, 1, kind, mutable}, value...) }
	body := func(b ...byte) []byte { return append([]byte{10, 1, byte(len(b) + 2), 0}, append(b, 0x0b)...) }
	passive, count := []byte{11, 1, 1, 0}, []byte{12, 1}
	for name, tt := range map[string]struct {
		want     bool
		sections [][]byte
	}{
		"a number":        {true, [][]byte{memory, global(0x7f, 1, 0x41, 0, 0x0b), body()}},
		"without memory":  {false, [][]byte{body()}},
		"a reference":     {false, [][]byte{memory, global(0x70, 1, 0xd0, 0x70, 0x0b), body()}},
		"a constant":      {true, [][]byte{memory, global(0x70, 0, 0xd0, 0x70, 0x0b), body()}},
		"a start":         {false, [][]byte{memory, {8, 0}, body()}},
		"table.get":       {true, [][]byte{table, memory, body(0x41, 0, 0x25, 0, 0x1a)}},
		"table.set":       {false, [][]byte{table, memory, body(0x41, 0, 0xd0, 0x70, 0x26, 0)}},
		"table.init":      {false, [][]byte{table, memory, element, body(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 12, 0, 0)}},
		"elem.drop":       {false, [][]byte{table, memory, element, body(0xfc, 13, 0)}},
		"table.copy":      {false, [][]byte{table, memory, body(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 0)}},
		"table.grow":      {false, [][]byte{table, memory, body(0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a)}},
		"table.fill":      {false, [][]byte{table, memory, body(0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0)}},
		"a data segment":  {true, [][]byte{memory, body(), {11, 1, 0, 0x41, 0, 0x0b, 1, 'x'}}},
		"passive segment": {true, [][]byte{memory, body(), passive}},
		"data.drop":       {false, [][]byte{memory, count, body(0xfc, 9, 0), passive}},
		"memory.init":     {false, [][]byte{memory, count, body(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0), passive}},
	} {
		sections := append([][]byte{types, funcs}, tt.sections...)
		m, err := instrument.Rewrite(module(sections...), instrument.Config{MaxPages: 16})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if m.Imageable != tt.want {
			t.Errorf("%s: imageable %v, want %v", name, m.Imageable, tt.want)
		}
	}
}
