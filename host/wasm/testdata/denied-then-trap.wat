;; parley/1: sends a request that is not granted, then traps.
(module
  (import "parley" "http_request" (func $ask (param i32 i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"method\":\"POST\",\"url\":\"http://169.254.169.254/\"}")
  (func (export "parley_alloc") (param i32) (result i32) (i32.const 4096))
  (func (export "parley_call") (param i32 i32) (result i64)
    (drop (call $ask (i32.const 0) (i32.const 49))) (drop (call $ask (i32.const 0) (i32.const 49)))
    unreachable))
