;; Calls the host endlessly from a function that the host calls: the reply in parley_alloc requires parley_alloc.
(module
  (import "parley" "call_tool" (func $c (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"tool\":\"a.b\"}")
  (func (export "parley_alloc") (param i32) (result i32) (drop (call $c (i32.const 0) (i32.const 14))) (i32.const 1024))
  (func (export "parley_call") (param i32 i32) (result i64) i64.const 0))
