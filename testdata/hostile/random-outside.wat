;; Requests random bytes outside its memory, then exits with the error.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $r (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $e (param i32) ))
  (memory (export "memory") 1)
  (func (export "_start") (call $e (call $r (i32.const 65530) (i32.const 0x7fffffff)))))
