;; Divides forever: the slowest plain instruction.
(module
  (memory (export "memory") 1)
  (func (export "_start") (local i64) (local.set 0 (i64.const -1)) (loop (local.set 0 (i64.or (i64.div_u (local.get 0) (i64.const 3)) (i64.const -9))) (br 0))))
