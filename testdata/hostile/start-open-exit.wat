;; Opens 250 files in its start section and exits there.
(module
  (import "wasi_snapshot_preview1" "path_open" (func $o (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $x (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "file")
  (func $s (local $i i32)
    (loop
      (drop (call $o (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 64)))
      (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 250))))
    (call $x (i32.const 0)))
  (start $s)
  (func (export "_start")))
