;; Recursion without a loop that takes 2^40 calls and little stack.
(module
  (memory (export "memory") 1)
  (func $f (param i32) (if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1))) (call $f (i32.sub (local.get 0) (i32.const 1))))))
  (func (export "_start") (call $f (i32.const 40))))
