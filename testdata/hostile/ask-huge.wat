;; Sends the host a request of 17 MiB.
(module
  (import "parley" "call_tool" (func $c (param i32 i32) (result i64)))
  (memory (export "memory") 300)
  (func (export "parley_alloc") (param i32) (result i32) i32.const 1024)
  (func (export "parley_call") (param i32 i32) (result i64) (drop (call $c (i32.const 0) (i32.const 17825792))) i64.const 0))
