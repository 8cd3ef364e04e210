;; Recursion of 2^64 calls without a loop and with little stack.
(module
  (memory (export "memory") 1)
  (func $f (param i32)
    (if (local.get 0) (then
      (call $f (i32.sub (local.get 0) (i32.const 1)))
      (call $f (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (call $f (i32.const 64)) (i64.const 0)))
