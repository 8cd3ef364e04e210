;; Logs terminal escapes, invalid UTF-8 and text that runs from right to left.
(module
  (import "parley" "log" (func $l (param i32 i32 i32)))
  (import "parley" "progress" (func $p (param f64 f64 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\1b[2J\1b]0;x\07\e2\80\ae\e2\80\8b\ff\fe\00\0d\0a\f0\9f\98\80")
  (data (i32.const 100) "{\"ok\":true}")
  (func (export "parley_alloc") (param i32) (result i32) i32.const 1024)
  (func (export "parley_call") (param i32 i32) (result i64)
    (call $l (i32.const -1) (i32.const 0) (i32.const 30))
    (call $p (f64.const nan) (f64.const -inf) (i32.const 0) (i32.const 30))
    (call $p (f64.const 2) (f64.const -1) (i32.const 0) (i32.const 30))
    i64.const 0x640000000b))
