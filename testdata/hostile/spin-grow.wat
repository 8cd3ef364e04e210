;; Grows its memory by nothing forever.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop (drop (memory.grow (i32.const 0))) (br 0))))
