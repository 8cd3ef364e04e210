;; Recurses as deep as the stack allows, and does the most work that it can on its way back.
(module
  (memory (export "memory") 256)
  (global $n (mut i32) (i32.const 0))
  (func $deep (param i32) (local $i i32)
    (local.set $i (i32.const 30))
    (loop
      (i32.store (i32.and (global.get $n) (i32.const 0xfffffc)) (local.get 0))
      (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (if (local.get 0) (then (call $deep (i32.sub (local.get 0) (i32.const 1)))))
    (local.set $i (i32.const 900))
    (loop
      (global.set $n (i32.add (i32.load (i32.and (global.get $n) (i32.const 0xfffffc))) (i32.const 4093)))
      (i32.store (i32.and (global.get $n) (i32.const 0xfffffc)) (local.get 0))
      (br_if 0 (local.tee $i (i32.sub (local.get $i) (i32.const 1))))))
  (func (export "_start") (loop (call $deep (i32.const 200000)) (br 0))))
