;; Copies a data segment that it has dropped.
(module
  (memory (export "memory") 1)
  (data $d "text")
  (func (export "_start") (data.drop $d) (memory.init $d (i32.const 0) (i32.const 0) (i32.const 4))))
