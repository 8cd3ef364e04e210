;; Recursion with large frames.
(module
  (memory (export "memory") 1)
  (func $f (param i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64) (result i64)
    (i64.add (call $f (local.get 15) (local.get 14) (local.get 13) (local.get 12) (local.get 11) (local.get 10) (local.get 9) (local.get 8)
      (local.get 7) (local.get 6) (local.get 5) (local.get 4) (local.get 3) (local.get 2) (local.get 1) (local.get 0)) (local.get 3)))
  (func (export "_start") (drop (call $f (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6) (i64.const 7) (i64.const 8)
    (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6) (i64.const 7) (i64.const 8)))))
