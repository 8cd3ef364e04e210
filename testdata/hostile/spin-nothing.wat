;; Runs forever in rounds without code.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop (block (loop (block (br 3)))))))
