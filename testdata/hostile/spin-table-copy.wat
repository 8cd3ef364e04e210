;; Copies a table of 200,000 entries onto itself forever.
(module
  (memory (export "memory") 1)
  (table 200000 funcref)
  (func (export "_start") (loop (table.copy (i32.const 1) (i32.const 0) (i32.const 199999)) (br 0))))
