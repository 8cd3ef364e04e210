;; Takes square roots of denormal numbers forever.
(module
  (memory (export "memory") 1)
  (func (export "_start") (local f64) (local.set 0 (f64.const 5e-324)) (loop (local.set 0 (f64.min (f64.sqrt (local.get 0)) (f64.const 5e-324))) (br 0))))
