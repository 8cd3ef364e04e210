;; Runs forever with a jump table.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop (br_table 0 0 0 (i32.const 7)))))
