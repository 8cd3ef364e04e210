;; Runs forever in the inner of two loops, and leaves it each time.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop (loop (br_if 1 (i32.const 1)) (br 0)))))
