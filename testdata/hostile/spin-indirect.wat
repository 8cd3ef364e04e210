;; Calls an empty function through a table forever.
(module
  (memory (export "memory") 1)
  (type $t (func)) (table 1 funcref) (elem (i32.const 0) $f) (func $f)
  (func (export "_start") (loop (call_indirect (type $t) (i32.const 0)) (br 0))))
