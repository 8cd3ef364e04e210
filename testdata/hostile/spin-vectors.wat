;; Runs forever with only vector instructions.
(module
  (memory (export "memory") 1)
  (func (export "_start") (local v128) (loop (local.set 0 (i8x16.add (local.get 0) (v128.const i32x4 1 2 3 4))) (br_if 0 (i32.eqz (i32.and (i8x16.all_true (local.get 0)) (i32.const 2)))))))
