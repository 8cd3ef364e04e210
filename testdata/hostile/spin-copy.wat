;; Copies 63 MiB onto itself forever, overlapping.
(module
  (memory (export "memory") 1024)
  (func (export "_start") (loop (memory.copy (i32.const 1) (i32.const 0) (i32.const 0x3f00000)) (br 0))))
