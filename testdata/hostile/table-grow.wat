;; Grows a table until that is refused, then ends successfully.
(module
  (memory (export "memory") 1)
  (table 1 funcref)
  (func (export "_start") (loop (br_if 0 (i32.ne (table.grow 0 (ref.null func) (i32.const 65536)) (i32.const -1))))))
