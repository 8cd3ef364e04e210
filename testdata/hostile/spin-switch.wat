;; Runs forever in a loop around a jump table that leads to the begins of two loops and to arms, the longest each time.
(module
  (memory (export "memory") 1)
  (global $n (mut i32) (i32.const 0))
  (func (export "_start")
    (loop $outer
      (loop $inner
        (block $end
          (block $long
            (block $short
              (global.set $n (i32.add (global.get $n) (i32.const 1)))
              (br_table $long $short $inner $long $outer $long $end (i32.and (global.get $n) (i32.const 7))))
            (br $inner))
          (memory.fill (i32.const 0) (i32.const 1) (i32.const 1000))
          (memory.fill (i32.const 9) (i32.const 2) (i32.const 1000))
          (br $inner))
        (br_if $outer (i32.const 1))))))
