;; Two functions call each other endlessly.
(module
  (memory (export "memory") 1)
  (func $f (call $g)) (func $g (call $f))
  (func (export "_start") (call $f)))
