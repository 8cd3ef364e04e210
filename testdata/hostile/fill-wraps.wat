;; Fills a range that begins near the end of the address space and wraps around.
(module
  (memory (export "memory") 1)
  (func (export "_start") (memory.fill (i32.const 0xfffffff0) (i32.const 1) (i32.const 0x7fffffff))))
