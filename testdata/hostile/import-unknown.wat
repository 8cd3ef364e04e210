;; Imports a function that WASI does not have.
(module
  (import "wasi_snapshot_preview1" "fd_fork" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") nop))
