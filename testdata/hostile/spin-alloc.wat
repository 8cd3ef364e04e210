;; Runs forever in parley_alloc.
;; Kind parley/1.
(module
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) (loop (br 0)) (i32.const 0))
  (func (export "parley_call") (param i32 i32) (result i64) (i64.const 0)))
