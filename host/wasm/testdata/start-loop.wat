;; Loops in the start function, before there is an instance.
(module
  (memory (export "memory") 1)
  (func $spin (loop $again (br $again)))
  (start $spin)
  (func (export "_start")))
