;; Fills a table beyond its end.
(module
  (memory (export "memory") 1)
  (table 10 funcref)
  (func (export "_start") (table.fill 0 (i32.const 5) (ref.null func) (i32.const 0x7fffffff))))
