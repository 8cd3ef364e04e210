;; Exits with a deadline's code after its deadline.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $e (param i32) ))
  (memory (export "memory") 1)
  (func (export "_start") (local i32) (loop (local.set 0 (i32.add (local.get 0) (i32.const 1))) (br_if 0 (i32.ne (local.get 0) (i32.const -1))) ) (loop (br_if 0 (i32.const 1))) (call $e (i32.const 0))))
