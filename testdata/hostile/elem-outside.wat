;; An element segment that does not fit into its table.
(module
  (memory (export "memory") 1)
  (table 1 funcref) (elem (i32.const 1) $f) (func $f)
  (func (export "_start") nop))
