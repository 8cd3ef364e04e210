;; Sends a request that is outside its memory.
;; Kind parley/1.
(module
  (import "parley" "call_tool" (func $l (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) (call $l (i32.const -8) (i32.const -1))))
