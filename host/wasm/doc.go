// Package wasm runs plugins that are WebAssembly modules. It supports the kinds parley/1 (a reactor that exchanges
// JSON) and wasi (any WASI preview 1 command). A module is read only when it is called. It is validated and
// instrumented before the engine sees it, and each call gets an instance of its own. The package also keeps the
// [Store] of installed plugins.
//
// A call runs on the caller's goroutine and ends by its deadline whatever the guest does: instrumented code returns
// to the host many times per millisecond (see internal/instrument), and every host function that can block or run
// long checks the context. Only the context decides whether a call ended in time, never the guest's output.
//
// Compilation can be neither bounded nor interrupted within a process. A separate process therefore compiles each
// module once: see [CompileMain]. It goes on when the call that needed it has ended, until the engine is closed. The
// resulting native code is cached in a folder that only this user may write to.
//
// Without grants a guest has no files and no environment, a wall clock that always shows 1970-01-01T00:00:00Z, a
// monotonic clock that starts at 0, and the same stream of random bytes in every call.
package wasm
