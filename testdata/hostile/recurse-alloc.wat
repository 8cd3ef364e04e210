;; parley_alloc calls itself endlessly.
;; Kind parley/1.
(module
  (memory (export "memory") 1)
  (func $f (param i32) (result i32) (call $f (local.get 0)))
  (func (export "parley_alloc") (param i32) (result i32) (call $f (local.get 0)))
  (func (export "parley_call") (param i32 i32) (result i64) (i64.const 0)))
