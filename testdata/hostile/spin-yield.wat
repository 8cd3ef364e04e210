;; Yields forever.
(module
  (import "wasi_snapshot_preview1" "sched_yield" (func $f (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (loop (drop (call $f)) (br 0))))
