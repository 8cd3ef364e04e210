;; Recurses as deep as the stack allows and stays there, looping at the bottom.
(module
  (memory (export "memory") 1)
  (func $deep (param i32)
    (if (i32.eqz (local.get 0)) (then (loop $again (br $again))))
    (call $deep (i32.sub (local.get 0) (i32.const 1))))
  (func (export "_start") (call $deep (i32.const 700000))))
