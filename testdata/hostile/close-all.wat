;; Closes every possible descriptor, then writes.
(module
  (import "wasi_snapshot_preview1" "fd_close" (func $c (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $e (param i32) ))
  (memory (export "memory") 1)
  (func (export "_start")  (local i32) (loop (drop (call $c (local.get 0))) (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000)))) (call $e (call $w (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
