;; Endless recursion.
(module
  (memory (export "memory") 1)
  (func $f (call $f))
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (call $f) (i64.const 0)))
