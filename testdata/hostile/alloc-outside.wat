;; Returns memory for its request that begins inside and ends outside.
(module
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) i32.const 65530)
  (func (export "parley_call") (param i32 i32) (result i64) i64.const 0))
