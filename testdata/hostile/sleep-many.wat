;; Waits for 2^32-1 subscriptions at once, then exits with the error.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $p (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $e (param i32) ))
  (memory (export "memory") 1)
  (func (export "_start") (call $e (call $p (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 0)))))
