;; Imports a function of another plugin by name.
(module
  (import "json" "parley_call" (func (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "_start") nop))
