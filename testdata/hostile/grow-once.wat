;; Requests 4 GiB at once, then uses memory that it did not get.
(module
  (memory (export "memory") 1)
  (func (export "_start") (drop (memory.grow (i32.const 65535))) (i32.store (i32.const -16) (i32.const 1))))
