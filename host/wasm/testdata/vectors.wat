;; Writes seven million empty vectors in one call; exits with WASI's result.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1000)
  (func (export "_start")
    (call $exit (call $write (i32.const 1) (i32.const 64) (i32.const 7000000) (i32.const 0)))))
