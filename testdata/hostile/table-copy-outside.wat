;; Copies beyond the end of a table.
(module
  (memory (export "memory") 1)
  (table 10 funcref)
  (func (export "_start") (table.copy (i32.const 0) (i32.const 9) (i32.const -1))))
