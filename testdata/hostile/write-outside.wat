;; Writes one byte outside its memory.
(module
  (memory (export "memory") 1)
  (func (export "_start") (i32.store8 (i32.const 65536) (i32.const 1))))
