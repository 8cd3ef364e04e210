;; Imports what only the host's own additions may.
(module
  (import "parley:host" "yield" (func $y))
  (memory (export "memory") 1)
  (func (export "_start") (call $y)))
