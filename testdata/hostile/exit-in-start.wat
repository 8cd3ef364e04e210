;; Exits in its start section.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $e (param i32) ))
  (memory (export "memory") 1)
  (func $s (call $e (i32.const 0xefffffff))) (start $s)
  (func (export "_start") unreachable))
