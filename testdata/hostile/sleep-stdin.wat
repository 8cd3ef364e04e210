;; Waits for its stdin, which is empty, then reads it forever.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $r (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 64)) (loop (drop (call $r (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 32))) (br 0))))
