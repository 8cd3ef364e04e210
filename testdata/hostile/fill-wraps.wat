;; Fills what begins near the end of the address space and is longer than the rest.
(module
  (memory (export "memory") 1)
  (func (export "_start") (memory.fill (i32.const 0xfffffff0) (i32.const 1) (i32.const 0x7fffffff))))
