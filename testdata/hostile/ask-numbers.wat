;; Calls a tool with millions of numbers, again and again.
(module
  (import "parley" "call_tool" (func $c (param i32 i32) (result i64)))
  (memory (export "memory") 300)
  (data (i32.const 0) "{\"tool\":\"a.b\",\"params\":[")
  (data (i32.const 15728637) "1]}")
  (func (export "parley_alloc") (param i32) (result i32) i32.const 16000000)
  (func (export "parley_call") (param i32 i32) (result i64) (local $i i32)
    (local.set $i (i32.const 24))
    (i32.store8 (i32.const 24) (i32.const 0x31))
    (loop
      (i32.store16 (i32.add (local.get $i) (i32.const 1)) (i32.const 0x312c))
      (br_if 0 (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 2))) (i32.const 15728634))))
    (i32.store8 (i32.const 15728636) (i32.const 0x2c))
    (i32.store8 (i32.const 15728635) (i32.const 0x20))
    (loop (drop (call $c (i32.const 0) (i32.const 15728640))) (br 0))
    i64.const 0))
