;; Imports the memory of another plugin by name.
(module
  (import "json" "memory" (memory 1))
  
  (func (export "_start") nop))
