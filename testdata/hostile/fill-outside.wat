;; Fills one byte too many.
(module
  (memory (export "memory") 1)
  (func (export "_start") (memory.fill (i32.const 1) (i32.const 0) (i32.const 65536))))
