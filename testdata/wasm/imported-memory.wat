;; Imports the memory of another instance.
(module
  (import "echo" "memory" (memory 1))
  (export "memory" (memory 0))
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (i64.const 0)))
