;; Imports a function that parley/1 does not have.
(module
  (import "env" "unknown" (func (param i32)))
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (i64.const 0)))
