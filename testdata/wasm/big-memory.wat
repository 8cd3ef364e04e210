;; Has an initial memory of 4 GiB.
(module
  (memory (export "memory") 65536)
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (i64.const 0)))
