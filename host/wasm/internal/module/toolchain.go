package module

import (
	"regexp"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// Toolchain is a toolchain whose modules Parley does not run.
type Toolchain struct {
	mark   string // a pattern for a line of [instrument.Describe]
	Name   string
	Advice string // what to build instead
}

// undefinedFunctions is the name for a problem of many toolchains. The fix for the rule that a module breaks takes
// precedence over its advice.
const undefinedFunctions = "a toolchain that leaves functions undefined"

// Toolchains are the toolchains whose modules people try. The first row that matches a module applies, so a toolchain
// must come before those that it is built on.
var Toolchains = []Toolchain{
	{`^import rb-js-abi-host\.`, "ruby.wasm, for JavaScript",
		"take a ruby.wasm without the js gem: the file ruby of a release for wasm32-unknown-wasip1"},
	{`^import ghc_wasm_jsffi\.|^section ghc_wasm_jsffi$`, "GHC, for JavaScript",
		"build it without foreign import javascript: wasm32-wasi-ghc then makes a WASI command"},
	{`^import (env\.mono_|webcil\.)|^export (mono_wasm_|webcilVersion$)`, ".NET (Blazor), for browsers",
		"build it with the workload wasi-experimental of .NET 8: <RuntimeIdentifier>wasi-wasm</RuntimeIdentifier> and " +
			"<WasmSingleFileBundle>true</WasmSingleFileBundle>"},
	{`^import (env\.(runtime|syscall/js)\.|gojs\.(runtime\.(t|sleepT)icks|syscall/js\..* .*,.*,))|^export go_scheduler$`,
		"TinyGo, for browsers", "build it with tinygo build -target=wasip1"},
	{`^import (gojs|go)\.`, "Go, for browsers",
		"build it with GOOS=wasip1 GOARCH=wasm go build"},
	{`^import (wbg|__wbindgen_\w+|\./.*_bg\.js)\.|^import \S+\.__wbindgen_|^producer wasm-bindgen `,
		"wasm-bindgen, for JavaScript",
		"build it without wasm-bindgen: cargo build --target wasm32-wasip1"},
	{`^import (env|napi|emnapi)\.(napi|emnapi)_`, "napi-rs, for Node.js",
		"build a program on the same library: cargo build --target wasm32-wasip1"},
	{`^section dylink|^import (env\.__(memory|table)_base |GOT\.(func|mem)\.)`,
		"a dynamic linker (a side module, or the main module of some)",
		"link the whole program into one module: emcc -sSTANDALONE_WASM without -sSIDE_MODULE and -sMAIN_MODULE, or " +
			"clang --target=wasm32-wasi without -shared"},
	{`^import a\.[a-zA-Z_$]{1,2} |^import env\.a \S*->(.*\n)+export [a-zA-Z_$]{1,2}$|` +
		`^import env\.(_?emscripten_|_?embind_|__syscall_|__cxa_|invoke_|_\w+_js )|^import \w+\.emscripten_`,
		"Emscripten, for JavaScript",
		"link it with emcc -sSTANDALONE_WASM, without -pthread, EM_JS or -sALLOW_MEMORY_GROWTH, or for wasm32-wasi"},
	{`^import env\.(seed ->f64|trace i32,i32,|(console|Date|performance|process|crypto)\.)`,
		"AssemblyScript, for JavaScript",
		"build it with asc --config node_modules/@assemblyscript/wasi-shim/asconfig.json, which replaces abort, seed, " +
			"trace, console, Date, performance, process and crypto; a plugin also takes --exportStart _initialize"},
	{`^import env\.abort i32,i32,i32,i32->$|^export __rtti_base$`, "AssemblyScript, for JavaScript",
		"build it with asc --use abort= for a plugin, or with the asconfig.json of @assemblyscript/wasi-shim for a command"},
	{`^import (wasi:|\[export\]|__main_module__\.|canonical_abi\.)|^export (cm32p2|canonical_abi_)|` +
		`^section component-type|^producer wit-`, "a toolchain for components",
		"build it for WASI preview 1, and not as a component: cargo build --target wasm32-wasip1, or " +
			"tinygo build -target=wasip1, or clang --target=wasm32-wasi"},
	{`^import wasi\.thread-spawn |^import \S+ shared memory$`, "a toolchain for threads (wasm32-wasip1-threads)",
		"build it without them: Rust for wasm32-wasip1, C for wasm32-wasi without -pthread"},
	{`^import env\..* \S*->\S*$`, undefinedFunctions,
		"define them, or link for wasm32-wasi without --allow-undefined (Rust: for wasm32-wasip1; AssemblyScript: without " +
			"@external)"},
}

// ToolchainOf returns the toolchain that built a module, or nil if it is unknown.
func ToolchainOf(wasm []byte) *Toolchain {
	shown := instrument.Describe(wasm)
	for i, t := range Toolchains {
		if regexp.MustCompile(`(?m)` + t.mark).MatchString(shown) {
			return &Toolchains[i]
		}
	}
	return nil
}
