;; Exits with the code that wazero mistakes for a deadline.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $e (param i32) ))
  (memory (export "memory") 1)
  (func (export "_start") (call $e (i32.const 0xefffffff))))
