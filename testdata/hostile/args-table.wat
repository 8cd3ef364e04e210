;; Has its arguments written over one another, through a table, which static checks cannot see.
(module
  (import "wasi_snapshot_preview1" "args_get" (func $f (param i32 i32) (result i32)))
  (type $t (func (param i32 i32) (result i32)))
  (table funcref (elem $f))
  (memory (export "memory") 128)
  (func (export "_start") (loop (drop (call_indirect (type $t) (i32.const 4000) (i32.const 0) (i32.const 0))) (br 0))))
