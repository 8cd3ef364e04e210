;; The same as fork.wat, through a table.
(module
  (memory (export "memory") 1)
  (type $t (func (param i32))) (table 1 funcref) (elem (i32.const 0) $f)
  (func $f (param i32) (if (local.get 0) (then (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0)) (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0)))))
  (func (export "_start") (call $f (i32.const 40))))
