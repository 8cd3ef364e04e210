;; Moves the descriptor of the first mount to a huge number; exits with WASI's result.
(module
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_renumber" (func $renumber (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (type $move (func (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (table 1 funcref)
  (elem (i32.const 0) $renumber)
  (data (i32.const 0) ".")
  (func (export "_start")
    (drop (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 2) (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 16)))
    ;; directly, then through the table
    (drop (call $renumber (i32.load (i32.const 16)) (i32.const 0x7fffffff)))
    (call $exit (call_indirect (type $move) (i32.load (i32.const 16)) (i32.const 0x7fffffff) (i32.const 0)))))
