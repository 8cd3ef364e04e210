;; A reactor without parley_call.
(module
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024)))
