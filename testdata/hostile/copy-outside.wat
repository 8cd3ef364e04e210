;; Copies a range whose end wraps around.
(module
  (memory (export "memory") 1)
  (func (export "_start") (memory.copy (i32.const 0) (i32.const 65535) (i32.const -1))))
