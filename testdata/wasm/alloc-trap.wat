;; parley_alloc traps.
(module
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) (unreachable))
  (func (export "parley_call") (param i32 i32) (result i64) (unreachable)))
