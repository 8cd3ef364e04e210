;; Writes 512 MB in one call: 1,000 ranges that are all the same 512 KiB.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 16)
  (func (export "_start") (local i32) (loop (i32.store (local.get 0) (i32.const 65536)) (i32.store offset=4 (local.get 0) (i32.const 524288)) (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 8))) (i32.const 65536)))) (loop (drop (call $w (i32.const 1) (i32.const 0) (i32.const 1000) (i32.const 589824))) (br 0))))
