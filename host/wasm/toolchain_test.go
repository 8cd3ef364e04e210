package wasm

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/wasm/internal/instrument"
	"github.com/parley-tools/parley/host/wasm/internal/module"
	"github.com/parley-tools/parley/host/wasm/store"
	"github.com/parley-tools/parley/manifest"
)

var update = flag.Bool("update", false, "rewrite the modules in testdata/foreign")

// foreignDir has a module for each row of toolchains, which package cli gives to every command that takes a module.
var foreignDir = filepath.Join("..", "..", "testdata", "foreign")

// shown are what modules show of their toolchains, in the form of [instrument.Describe]. Most are from modules that
// the toolchains made; the first of a toolchain is in testdata/foreign under the name.
var shown = []struct{ file, name, lines string }{
	{"ruby", "ruby.wasm, for JavaScript",
		"import rb-js-abi-host.eval-js: func(code: string) -> variant { success } i32->i32\n" +
			"import canonical_abi.resource_drop_js-abi-value i32->\nexport canonical_abi_drop_rb-abi-value\n" +
			"section producers\nproducer rustc 1.92.0\nproducer clang 18.1.2"},
	{"ghc", "GHC, for JavaScript",
		"import ghc_wasm_jsffi.ZC0ZCmainZC i32->\nimport wasi_snapshot_preview1.fd_write " +
			"i32,i32,i32,i32->i32\nexport hs_init\nsection ghc_wasm_jsffi"},
	{"dotnet", ".NET (Blazor), for browsers",
		"import env.mono_wasm_invoke_jsimport_ST i32,i32->\nimport env.abort ->\n" +
			"import env.emscripten_force_exit i32->\nexport mono_wasm_load_runtime"},
	{"", ".NET (Blazor), for browsers",
		"import webcil.memory memory\nexport webcilVersion\nexport getWebcilPayload"},
	{"tinygo", "TinyGo, for browsers",
		"import gojs.runtime.ticks ->f64\nimport gojs.syscall/js.valueGet " +
			"i64,i32,i32,i32,i32->i64\nimport wasi_snapshot_preview1.fd_write i32,i32,i32,i32->i32\nexport go_scheduler"},
	{"", "TinyGo, for browsers", // before 0.27
		"import env.runtime.ticks ->f64\nimport env.syscall/js.valueGet i32,i64,i32,i32->\nexport _start"},
	{"", "TinyGo, for browsers", "import env.syscall/js.finalizeRef i64,i32->\nexport _start\nexport resume"},
	{"", "Emscripten, for JavaScript", // made by -sSTANDALONE_WASM -sALLOW_MEMORY_GROWTH
		"import wasi_snapshot_preview1.fd_write i32,i32,i32,i32->i32\n" +
			"import env.emscripten_notify_memory_growth i32->\nexport memory\nexport _start"},
	{"go", "Go, for browsers",
		"import gojs.runtime.wasmExit i32->\nimport gojs.syscall/js.valueGet i32->\nexport run\n" +
			"export resume\nsection producers\nproducer Go go1.26\nproducer Go cmd/compile go1.26"},
	{"", "Go, for browsers", "import go.runtime.wasmExit i32->\nimport go.syscall/js.valueGet i32->"},
	{"wasm-bindgen", "wasm-bindgen, for JavaScript",
		"import wbg.__wbindgen_throw i32,i32->\nexport __wbindgen_malloc\n" +
			"section producers\nproducer rustc 1.76.0\nproducer wasm-bindgen 0.2.92"},
	{"", "wasm-bindgen, for JavaScript",
		"import ./tiktoken_bg.js.__wbg_stringify_f7ed6987935b4a24 i32->i32"},
	{"", "wasm-bindgen, for JavaScript",
		"import __wbindgen_placeholder__.__wbg_fetch_6bbc32f991730587 i32->i32"},
	{"napi", "napi-rs, for Node.js",
		"import env.memory shared memory\nimport env.napi_create_error i32,i32,i32,i32->i32\n" +
			"import wasi.thread-spawn i32->i32\nexport napi_register_wasm_v1"},
	{"dylink", "a dynamic linker (a side module, or the main module of some)",
		"section dylink.0\nimport env.memory memory\n" +
			"import env.__memory_base global\nimport env.__indirect_function_table table\nexport __wasm_apply_data_relocs"},
	{"", "a dynamic linker (a side module, or the main module of some)",
		"import env.__memory_base global\nexport tree_sitter_x"},
	{"emscripten", "Emscripten, for JavaScript",
		"import env.__syscall_fchmod i32,i32->i32\nimport env.emscripten_resize_heap " +
			"i32->i32\nexport __wasm_call_ctors"},
	{"minified", "Emscripten, for JavaScript", "import a.a i32->\nimport a.b i32,i32->i32\nexport d\nexport e"},
	{"", "Emscripten, for JavaScript", "import a.ba shared memory\nexport ca"},
	{"", "Emscripten, for JavaScript", "import env._embind_register_void i32,i32->\nimport env._abort_js ->"},
	{"assemblyscript", "AssemblyScript, for JavaScript",
		"import env.abort i32,i32,i32,i32->\nexport memory\nexport digest"},
	{"", "AssemblyScript, for JavaScript", "import env.seed ->f64\nexport __new\nexport __rtti_base"},
	{"component", "a toolchain for components",
		"import env.memory memory\nimport wasi:io/error@0.2.12.[resource-drop]error " +
			"i32->\nimport __main_module__.cabi_realloc i32,i32,i32,i32->i32\nexport fd_write\n" +
			"section component-type:wit-bindgen:0.58.0:wasi:cli@0.2.12:command:encoded world"},
	{"", "a toolchain for components", "import canonical_abi.resource_drop_x i32->\nexport canonical_abi_realloc"},
	{"", "a toolchain for components", "export cabi_realloc\nsection producers\nproducer wit-component 0.220.0"},
	{"threads", "a toolchain for threads (wasm32-wasip1-threads)",
		"import env.memory shared memory\nimport wasi.thread-spawn " +
			"i32->i32\nexport _start\nexport wasi_thread_start"},
	{"undefined", "a toolchain that leaves functions undefined", "import env.abort ->\nexport _start"},
	{"", "a toolchain that leaves functions undefined", "import env.host_print i32->\nexport go\nexport memory"},
	{"", "Emscripten, for JavaScript",
		"import env.a i32->\nimport env.b i32,i32->i32\nimport env.memory memory\nexport c\nexport d"},
	{"", "a dynamic linker (a side module, or the main module of some)",
		"import env.__indirect_function_table table\nimport GOT.func.foo global\nexport _start"},
	{"", "a dynamic linker (a side module, or the main module of some)", "import GOT.mem.errno global\nexport _start"},
	{"", "AssemblyScript, for JavaScript", "import env.performance.now ->f64\nexport t\nexport memory"},
}

// TestImportsOfOtherKinds checks that a module that imports something other than functions is not taken for one with
// undefined functions, whether it has some or not, and that the fix for what it imports is not lost.
func TestImportsOfOtherKinds(t *testing.T) {
	for kind, says := range map[string]string{
		"memory": "; link it without --import-memory (asc: --importMemory)",
		"table":  "; link it without --import-table (asc: --importTable)",
		"global": "only functions can be imported",
		"tag":    "; build it without them: clang -fno-exceptions, rustc -C panic=abort",
	} {
		for _, name := range []string{"x", "memory", "__indirect_function_table", "__cpp_exception", "__stack_pointer"} {
			for _, more := range []string{"", "import env.write i32->\n"} {
				wasm := showing(t, "import env."+name+" "+kind+"\n"+more+"export _start")
				if tc := module.ToolchainOf(wasm); more == "" && tc != nil {
					t.Errorf("%s %s: %s", name, kind, tc.Name)
				}
				err := module.Check(wasm, &manifest.Manifest{Name: "m", Kind: manifest.KindWASI})
				if err == nil || more == "" && strings.Contains(err.Error(), "built by") ||
					!strings.Contains(err.Error(), says) || kind != "global" && !strings.HasSuffix(err.Error(), says) {
					t.Errorf("%s %s: %v, want %q", name, kind, err, says)
				}
			}
		}
	}
}

// TestToolchains checks that every toolchain is recognized by what its modules show, and that a module is refused with
// the toolchain, the rule and the advice, whether it has a manifest or not.
func TestToolchains(t *testing.T) {
	if *update {
		if err := os.RemoveAll(foreignDir); err != nil {
			t.Fatal(err)
		}
	}
	missing := map[string]module.Toolchain{}
	for _, tc := range module.Toolchains {
		missing[tc.Name] = tc
	}
	for _, s := range shown {
		wasm := showing(t, s.lines)
		if got := instrument.Describe(wasm); got != s.lines+"\n" {
			t.Errorf("described as\n%swant\n%s", got, s.lines)
		}
		tc := module.ToolchainOf(wasm)
		if tc == nil || tc.Name != s.name {
			t.Errorf("%+v, want %s for\n%s", tc, s.name, s.lines)
			continue
		}
		if s.file != "" {
			delete(missing, s.name)
			path := filepath.Join(foreignDir, s.file+".wasm")
			if *update {
				put(t, path, wasm)
			}
			if string(readFile(t, path)) != string(wasm) {
				t.Errorf("%s is another module; run go test ./host/wasm -run TestToolchains -update", path)
			}
		}
		path := filepath.Join(t.TempDir(), "m.wasm")
		put(t, path, wasm)
		_, err := store.ReadCandidate(path, "0.1.0")
		for _, kind := range []string{manifest.KindWASI, manifest.KindParley, manifest.KindExtism} {
			for _, err := range []error{err, module.Check(wasm, &manifest.Manifest{Name: "m", Kind: kind})} {
				if !errors.Is(err, host.InvalidPlugin) || !strings.HasPrefix(err.Error(), "m: built by "+s.name+"; ") ||
					!strings.HasSuffix(err.Error(), "; "+tc.Advice) {
					t.Errorf("%s as %s: %v, want the toolchain and %q", s.name, kind, err, tc.Advice)
				}
			}
		}
	}
	for name := range missing {
		t.Errorf("no module of %s is in testdata/foreign", name)
	}
}

// TestFeatures checks that a module is refused for a feature by its name, with the way to build without it.
func TestFeatures(t *testing.T) {
	code := func(body ...byte) []byte {
		return wholeModule(section(1, []byte{1, 0x60, 0, 0}), section(3, []byte{1, 0}),
			section(10, append([]byte{1, byte(len(body) + 1), 0}, body...)))
	}
	for _, c := range []struct {
		says string
		wasm []byte
	}{
		{"tail calls", code(0x12, 0, 0x0b)},
		{"tail calls", code(0x13, 0, 0, 0x0b)},
		{"exceptions", code(0x08, 0, 0x0b)},
		{"exceptions", code(0x1f, 0x40, 0, 0x0b, 0x0b)},
		{"exceptions", wholeModule(section(13, []byte{1, 0, 0}))},
		{"exceptions", wholeModule(section(1, []byte{1, 0x60, 1, 0x69, 0}))},
		{"exceptions", wholeModule(section(2, []byte{1, 1, 'e', 1, 't', 4, 0, 0}))},
		{"exceptions", wholeModule(section(7, []byte{1, 1, 't', 4, 0}))},
		{"threads", wholeModule(section(5, []byte{1, 3, 1, 1}))},
		{"threads", wholeModule(section(2, []byte{1, 1, 'x', 1, 'm', 2, 3, 1, 1}))},
		{"threads", code(0xfe, 0, 0x0b)},
		{"garbage collection", wholeModule(section(1, []byte{1, 0x5e, 0x7f, 0}))},
		{"garbage collection", wholeModule(section(1, []byte{1, 0x60, 1, 0x6e, 0}))},
		{"typed references", wholeModule(section(4, []byte{1, 0x64, 0x70, 0, 1}))},
		{"typed references", code(0x14, 0, 0x0b)},
		{"garbage collection", code(0xfb, 0, 0, 0x0b)},
		{"64-bit addresses", wholeModule(section(5, []byte{1, 4, 1}))},
		{"64-bit addresses", wholeModule(section(4, []byte{1, 0x70, 4, 1}))},
		{"several memories", wholeModule(section(5, []byte{2, 0, 1, 0, 1}))},
		{"relaxed SIMD", code(0xfd, 0x80, 0x02, 0x0b)},
		{"wide arithmetic", code(0xfc, 19, 0x0b)},
	} {
		err := module.Check(c.wasm, &manifest.Manifest{Name: "m", Kind: manifest.KindWASI})
		if err == nil || !strings.Contains(err.Error(), "not accepted: the module uses "+c.says) &&
			!strings.Contains(err.Error(), "or "+c.says) {
			t.Errorf("%v, want that the module uses %s", err, c.says)
		} else if !regexp.MustCompile(`\); (build|link|compile) .{20}`).MatchString(err.Error()) {
			t.Errorf("%v: no advice", err)
		}
		checkRefusal(t, err)
	}
}

// TestRefusalsNameLimits changes each byte of modules. Whatever is refused then, the error names a limit only with a
// setting and a value that accepts the module, or says nothing of limits.
func TestRefusalsNameLimits(t *testing.T) {
	whole := wholeModule(section(1, []byte{1, 0x60, 0, 0}), section(3, []byte{1, 0}), section(4, []byte{1, 0x70, 1, 1, 2}),
		section(5, []byte{1, 1, 1, 2}), section(6, []byte{1, 0x7f, 0, 0x41, 0, 0x0b}), section(7, vector([][]byte{
			append([]byte{6}, "_start\x00\x00"...), append([]byte{6}, "memory\x02\x00"...)})),
		section(10, []byte{1, 8, 1, 1, 0x7f, 0x41, 0, 0x1a, 0x0b}))
	modules := [][]byte{whole}
	for _, name := range []string{"dylink.wasm", "minified.wasm", "threads.wasm"} {
		modules = append(modules, readFile(t, filepath.Join(foreignDir, name)))
	}
	for _, wasm := range modules {
		for at := range wasm {
			for _, b := range []byte{0, 1, 2, 3, 4, 0x0b, 0x3f, 0x60, 0x7f, 0x80, 0xfe, 0xff} {
				changed := append([]byte(nil), wasm...)
				changed[at] = b
				checkRefusal(t, module.Check(changed, &manifest.Manifest{Name: "m", Kind: manifest.KindWASI}))
			}
		}
	}
}

var (
	namesLimit  = regexp.MustCompile(`limits\]|set +[a-z_]* *=|= 0\b`)
	namesItWell = regexp.MustCompile(`; to accept it, set [a-z_]+ = [1-9]\d* under \[plugin\.m\.limits\] in policy\.toml$`)
)

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if err != nil && namesLimit.MatchString(err.Error()) &&
		(!namesItWell.MatchString(err.Error()) || strings.Contains(err.Error(), "the module uses")) {
		t.Errorf("a limit without a name or a value, or for a feature: %v", err)
	}
}

// showing returns a module that shows these lines.
func showing(t *testing.T, lines string) []byte {
	t.Helper()
	text := func(s string) []byte { return append(unsignedLEB(len(s)), s...) }
	var types, imports, exports, producers [][]byte
	var custom []byte
	for _, line := range strings.Split(lines, "\n") {
		what, rest, _ := strings.Cut(line, " ")
		switch what {
		case "import":
			at := strings.LastIndexByte(rest, ' ')
			kind := rest[at+1:]
			if name, shared := strings.CutSuffix(rest, " shared memory"); shared {
				at, kind = len(name), "shared memory"
			}
			// The name of a function may have dots, that of a module has at most those of a version or a file.
			names := regexp.MustCompile(`^(\./[^.]*\.js|[^.]*@\d+\.\d+\.\d+|[^.]*)\.(.*)$`).FindStringSubmatch(rest[:at])
			i := append(text(names[1]), text(names[2])...)
			switch kind {
			case "table":
				i = append(i, 1, 0x70, 0, 1)
			case "memory":
				i = append(i, 2, 0, 1)
			case "shared memory":
				i = append(i, 2, 3, 1, 1)
			case "global":
				i = append(i, 3, 0x7f, 0)
			case "tag":
				i = append(i, 4, 0, 0)
			default:
				params, results, _ := strings.Cut(kind, "->")
				i = append(append(i, 0), unsignedLEB(len(types))...)
				types = append(types, append(append([]byte{0x60}, valueTypes(params)...), valueTypes(results)...))
			}
			imports = append(imports, i)
		case "export":
			exports = append(exports, append(append(text(rest), 0), unsignedLEB(len(types))...))
		case "section":
			if rest != "producers" {
				custom = append(custom, section(0, text(rest))...)
			}
		case "producer":
			at := strings.LastIndexByte(rest, ' ')
			producers = append(producers, append(text(rest[:at]), text(rest[at+1:])...))
		}
	}
	var first, last []byte
	if strings.HasPrefix(lines, "section") {
		first = custom
	} else {
		last = custom
	}
	if producers != nil {
		field := append(text("processed-by"), vector(producers)...)
		last = append(last, section(0, append(text("producers"), append([]byte{1}, field...)...))...)
	}
	own := unsignedLEB(len(types))
	return wholeModule(first, section(1, vector(append(types, []byte{0x60, 0, 0}))), section(2, vector(imports)),
		section(3, append([]byte{1}, own...)), section(7, vector(exports)), section(10, []byte{1, 2, 0, 0x0b}), last)
}
