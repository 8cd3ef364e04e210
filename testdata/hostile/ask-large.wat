;; Sends the host requests with 15 MiB of text, again and again.
(module
  (import "parley" "http_request" (func $c (param i32 i32) (result i64)))
  (memory (export "memory") 300)
  (data (i32.const 0) "{\"url\":\"")
  (data (i32.const 15728638) "\"}")
  (func (export "parley_alloc") (param i32) (result i32) i32.const 16000000)
  (func (export "parley_call") (param i32 i32) (result i64)
    (memory.fill (i32.const 8) (i32.const 0x78) (i32.const 15728630))
    (loop (drop (call $c (i32.const 0) (i32.const 15728640))) (br 0))
    i64.const 0))
