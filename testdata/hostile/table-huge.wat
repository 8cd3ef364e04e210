;; Has an initial table of 2^32-1 entries.
(module
  (memory (export "memory") 1)
  (table 4294967295 funcref)
  (func (export "_start") nop))
