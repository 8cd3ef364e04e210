;; Fills 64 MiB forever, one instruction at a time.
(module
  (memory (export "memory") 1024)
  (func (export "_start") (loop (memory.fill (i32.const 0) (i32.const 7) (i32.const 0x4000000)) (br 0))))
