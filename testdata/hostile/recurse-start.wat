;; Calls itself endlessly in its start section.
(module
  (memory (export "memory") 1)
  (func $f (call $f)) (start $f)
  (func (export "_start") nop))
