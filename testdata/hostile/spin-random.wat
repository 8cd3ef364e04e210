;; Requests 16 MiB of random bytes forever.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $f (param i32 i32) (result i32)))
  (memory (export "memory") 256)
  (func (export "_start") (loop (drop (call $f (i32.const 0) (i32.const 0x1000000))) (br 0))))
