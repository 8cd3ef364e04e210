;; Grows its memory by nothing for ever.
(module
  (memory (export "memory") 1)
  (func (export "_start") (loop (drop (memory.grow (i32.const 0))) (br 0))))
