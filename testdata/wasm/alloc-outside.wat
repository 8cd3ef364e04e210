;; parley_alloc returns an address after the end of memory.
(module
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 0x7fffffff))
  (func (export "parley_call") (param i32 i32) (result i64) (unreachable)))
