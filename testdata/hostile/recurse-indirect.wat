;; Calls itself endlessly through a table.
(module
  (memory (export "memory") 1)
  (type $t (func)) (table 1 funcref) (elem (i32.const 0) $f) (func $f (call_indirect (type $t) (i32.const 0)))
  (func (export "_start") (call $f)))
