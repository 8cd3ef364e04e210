;; Grows its memory until that is refused, writes to every page of it, then ends successfully.
(module
  (memory (export "memory") 1)
  (func (export "_start") (local i32) (loop (local.set 0 (memory.grow (i32.const 16))) (if (i32.ne (local.get 0) (i32.const -1)) (then (memory.fill (i32.shl (local.get 0) (i32.const 16)) (i32.const 1) (i32.const 1048576)) (br 1))))))
