;; Requests 60 MiB of random bytes repeatedly, in one loop.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1000)
  (func (export "_start")
    (loop $again (drop (call $random (i32.const 0) (i32.const 62914560))) (br $again))))
