;; Fills a table of 200,000 entries forever.
(module
  (memory (export "memory") 1)
  (table 200000 funcref)
  (func (export "_start") (loop (table.fill 0 (i32.const 0) (ref.null func) (i32.const 200000)) (br 0))))
