;; Runs forever.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop (br 0))))
