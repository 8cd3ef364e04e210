;; Reads at the largest address with the largest offset.
(module
  (memory (export "memory") 1)
  (func (export "_start") (drop (i64.load offset=0xffffffff (i32.const 0xffffffff)))))
