;; Calls a function of another type.
(module
  (memory (export "memory") 1)
  (type $t (func)) (table 1 funcref) (elem (i32.const 0) $f) (func $f (param i64 i64))
  (func (export "_start") (call_indirect (type $t) (i32.const 0))))
