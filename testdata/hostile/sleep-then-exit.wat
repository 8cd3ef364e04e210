;; Sleeps for an hour, then ends successfully.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $p (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $x (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 24) "\00\00\8d\49\fd\1a\07\00")
  (func (export "_start") (drop (call $p (i32.const 0) (i32.const 256) (i32.const 1) (i32.const 512))) (call $x (i32.const 0))))
