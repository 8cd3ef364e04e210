;; Calls a function of WASI through a table with another type.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $x (param i32)))
  (type $t (func (param i64) (result i64)))
  (memory (export "memory") 1)
  (table funcref (elem $x))
  (func (export "_start") (drop (call_indirect (type $t) (i64.const 0) (i32.const 0)))))
