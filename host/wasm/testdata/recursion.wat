;; Recurses infinitely.
(module
  (memory (export "memory") 1)
  (func $deep (param i64) (result i64) (i64.add (call $deep (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))
  (func (export "_start") (drop (call $deep (i64.const 0)))))
