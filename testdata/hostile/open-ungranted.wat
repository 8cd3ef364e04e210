;; Opens /etc/passwd from every descriptor, with a path that leads out, then exits with the last error.
(module
  (import "wasi_snapshot_preview1" "path_open" (func $o (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $e (param i32) ))
  (memory (export "memory") 1)
  (global (mut i32) (i32.const 0)) (data (i32.const 100) "../../../etc/passwd")
  (func (export "_start") (local i32) (local.set 0 (i32.const 3)) (loop (global.set 0 (call $o (local.get 0) (i32.const 0) (i32.const 100) (i32.const 18) (i32.const 0) (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 64))) (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 100)))) (call $e (global.get 0))))
