;; Imports the ABI of the other kind.
(module
  (import "parley" "read_secret" (func (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "_start") nop))
