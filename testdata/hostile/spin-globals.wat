;; Counts in a global forever, which would defeat a meter that shares the globals of the guest.
(module
  (memory (export "memory") 1)
  (global (mut i32) (i32.const 0))
  (func (export "_start") (loop (global.set 0 (i32.const 2147483647)) (global.set 0 (i32.const -2147483648)) (br 0))))
