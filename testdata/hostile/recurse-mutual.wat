;; Two functions call each other without end.
(module
  (memory (export "memory") 1)
  (func $f (call $g)) (func $g (call $f))
  (func (export "_start") (call $f)))
