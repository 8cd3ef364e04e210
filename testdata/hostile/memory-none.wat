;; Has a memory without pages and writes to it.
(module
  (memory (export "memory") 0)
  (func (export "_start") (i32.store (i32.const 0) (i32.const 1))))
