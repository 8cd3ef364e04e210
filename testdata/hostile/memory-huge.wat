;; A memory of 4 GiB from the start.
(module
  (memory (export "memory") 65536)
  (func (export "_start") nop))
