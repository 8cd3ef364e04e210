// Package wasm runs plugins that are WebAssembly modules: kinds parley/1 (a reactor that speaks JSON) and wasi (any
// WASI preview 1 command). It reads a module only when it is called, judges and instruments it before the engine
// sees it, gives every call an instance of its own, and keeps the store of installed plugins.
//
// A call runs on the goroutine that asks for it. It ends by its deadline, whatever the guest does: rewritten code
// comes back to the host many times in a millisecond (internal/instrument), and every host function that can
// wait or work long looks at the context. Whether a call ended in time is judged by the context alone, never by what the guest says.
//
// Compiling can be neither bounded nor interrupted within a process, so a process of its own does it, once for a
// module: see CompileMain. What it leaves in the cache is native code, which only this user may be able to write.
//
// What a guest sees without a grant: no files, no environment, a wall clock that stands at 1970-01-01T00:00:00Z, a
// monotonic clock that runs from 0, and the same stream of random bytes in every call.
package wasm
