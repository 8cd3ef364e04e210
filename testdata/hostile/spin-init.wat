;; Copies a passive data segment forever.
(module
  (memory (export "memory") 1)
  (data "01234567")
  (func (export "_start") (loop (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 8)) (br 0))))
