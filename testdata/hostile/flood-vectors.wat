;; Writes 2^29 ranges in one call, then exits with the error.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $e (param i32) ))
  (memory (export "memory") 1)
  (func (export "_start") (call $e (call $w (i32.const 1) (i32.const 0) (i32.const 0x1fffffff) (i32.const 8)))))
