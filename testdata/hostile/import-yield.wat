;; Imports a function that is reserved for instrumentation.
(module
  (import "parley:host" "yield" (func $y))
  (memory (export "memory") 1)
  (func (export "_start") (call $y)))
