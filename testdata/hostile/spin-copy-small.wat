;; Copies a kilobyte between random addresses in 128 MiB forever: too little to be charged, and never in the cache.
(module
  (memory (export "memory") 2048)
  (func (export "_start") (local $x i32)
    (local.set $x (i32.const 12345))
    (loop
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
      (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
      (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))
      (memory.copy (i32.and (local.get $x) (i32.const 0x7fff000)) (i32.and (i32.shr_u (local.get $x) (i32.const 3)) (i32.const 0x7fff000)) (i32.const 1024))
      (br 0))))
