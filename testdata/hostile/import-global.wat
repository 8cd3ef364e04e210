;; Imports a global of the host's module.
(module
  (import "parley" "budget" (global (mut i32)))
  (memory (export "memory") 1)
  (func (export "_start") nop))
