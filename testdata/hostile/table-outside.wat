;; Calls an entry after the end of its table.
(module
  (memory (export "memory") 1)
  (type $t (func)) (table 1 funcref)
  (func (export "_start") (call_indirect (type $t) (i32.const -1))))
