;; Writes a vector of 16 bytes outside its memory.
(module
  (memory (export "memory") 1)
  (func (export "_start") (v128.store (i32.const 65521) (v128.const i64x2 1 1))))
