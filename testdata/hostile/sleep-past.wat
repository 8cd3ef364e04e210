;; Sleeps until a time in the past, forever.
(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $p (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (i64.store (i32.const 0) (i64.const 1)) (i32.store8 (i32.const 8) (i32.const 0)) (i32.store (i32.const 16) (i32.const 1)) (i64.store (i32.const 24) (i64.const 3600000000000)) (i32.store (i32.const 16) (i32.const 0)) (i32.store16 (i32.const 40) (i32.const 1)) (loop (drop (call $p (i32.const 0) (i32.const 1024) (i32.const 1) (i32.const 2048))) (br 0))))
