package instrument

// feature is a part of WebAssembly after 2.0 that is not supported, and how to build a module without it.
type feature struct{ name, without string }

var (
	tailCalls  = feature{"tail calls", "build it without them: clang -mno-tail-call, rustc -C target-feature=-tail-call"}
	exceptions = feature{"exceptions", "build it without them: clang -fno-exceptions, rustc -C panic=abort"}
	threads    = feature{"threads", "build it without them: Rust for wasm32-wasip1, C for wasm32-wasi without -pthread"}
	gc         = feature{"garbage collection or typed references",
		"compile its language for a target that has them in linear memory, such as WASI preview 1"}
	memory64    = feature{"64-bit addresses", "build it for wasm32 instead of wasm64"}
	multiMemory = feature{"several memories",
		"link it with one memory; Binaryen's --multi-memory-lowering makes one of them"}
	relaxedSIMD = feature{"relaxed SIMD",
		"build it without it: clang -mno-relaxed-simd, rustc -C target-feature=-relaxed-simd"}
	wideArithmetic = feature{"wide arithmetic",
		"build it without it: clang -mno-wide-arithmetic, rustc -C target-feature=-wide-arithmetic"}
)

// Features are recognized by the opcodes of instructions, the codes of types, the limits of tables and memories, and
// the kinds of imports. For anything else that is refused, the feature is unknown.
var (
	instructionFeatures = map[byte]feature{0x06: exceptions, 0x07: exceptions, 0x08: exceptions, 0x09: exceptions,
		0x0a: exceptions, 0x18: exceptions, 0x19: exceptions, 0x1f: exceptions, 0x12: tailCalls, 0x13: tailCalls, 0x14: gc,
		0x15: gc, 0xd3: gc, 0xd4: gc, 0xd5: gc, 0xd6: gc, 0xfb: gc, 0xfe: threads}
	typeFeatures = map[byte]feature{0x63: gc, 0x64: gc, 0x69: exceptions, 0x6a: gc, 0x6b: gc, 0x6c: gc, 0x6d: gc, 0x6e: gc,
		0x71: gc, 0x72: gc, 0x73: gc, 0x74: exceptions}
	limitsFeatures = map[byte]feature{2: threads, 3: threads, 4: memory64, 5: memory64, 6: threads, 7: threads}
	importFeatures = map[string]feature{"shared memory": threads, "tag": exceptions}
)
