;; Reads 64 MiB in strides that miss every cache, forever.
(module
  (memory (export "memory") 1024)
  (func (export "_start") (local i32) (loop (drop (i32.load (i32.and (local.tee 0 (i32.add (i32.mul (local.get 0) (i32.const 1664525)) (i32.const 1013904223))) (i32.const 0x3fffffc)))) (br 0))))
