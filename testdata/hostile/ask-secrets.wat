;; Requests a secret with a name that is longer than allowed.
(module
  (import "parley" "read_secret" (func $c (param i32 i32) (result i64)))
  (memory (export "memory") 300)
  (func (export "parley_alloc") (param i32) (result i32) i32.const 16000000)
  (func (export "parley_call") (param i32 i32) (result i64) (drop (call $c (i32.const 0) (i32.const 15000000))) i64.const 0))
