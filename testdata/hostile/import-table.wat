;; Imports the table of another plugin.
(module
  (import "json" "__indirect_function_table" (table 1 funcref))
  (memory (export "memory") 1)
  (func (export "_start") nop))
