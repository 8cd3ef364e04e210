;; Calls itself endlessly.
(module
  (memory (export "memory") 1)
  (func $f (call $f))
  (func (export "_start") (call $f)))
