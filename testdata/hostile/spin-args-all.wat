;; Reads megabytes of arguments forever.
(module
  (import "wasi_snapshot_preview1" "args_get" (func $f (param i32 i32) (result i32)))
  (memory (export "memory") 128)
  (func (export "_start") (loop (drop (call $f (i32.const 0) (i32.const 4096))) (br 0))))
