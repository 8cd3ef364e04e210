;; Waits until its time is nearly over, then writes to each page of 240 MiB for the first time.
(module
  (import "wasi_snapshot_preview1" "clock_time_get" (func $now (param i32 i64 i32) (result i32)))
  (memory (export "memory") 3840)
  (func (export "_start") (local $at i32)
    (loop
      (drop (call $now (i32.const 1) (i64.const 0) (i32.const 0)))
      (br_if 0 (i64.lt_u (i64.load (i32.const 0)) (i64.const 145000000))))
    (local.set $at (i32.const 65536))
    (loop
      (i32.store (local.get $at) (i32.const 1))
      (br_if 0 (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4096))) (i32.const 251658240))))
    (loop (br 0))))
