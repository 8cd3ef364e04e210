;; Grows its memory by more than the maximum.
(module
  (memory (export "memory") 1)
  (func (export "_start")
    (if (i32.ne (memory.grow (i32.const -1)) (i32.const -1)) (then unreachable))
    (if (i32.ne (memory.grow (i32.const 65536)) (i32.const -1)) (then unreachable))))
