;; Logs 1 GiB from outside its memory.
;; Kind parley/1.
(module
  (import "parley" "log" (func $l (param i32 i32 i32)))
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (call $l (i32.const 1) (i32.const -65536) (i32.const 0x40000000)) (i64.const 0)))
