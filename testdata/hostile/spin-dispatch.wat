;; Runs forever in the form of Go's compiler: jumps with known and unknown numbers, forward, back and to itself, in a
;; loop that is entered at two points and has such a loop within.
(module
  (memory (export "memory") 1)
  (global $n (mut i32) (i32.const 0))
  (func (export "_start") (local $to i32) (local $inner i32)
    (loop $again
      (block $second
        (block $first
          (br_table $first $second $second (local.get $to)))
        (global.set $n (i32.add (global.get $n) (i32.const 1)))
        (local.set $to (i32.and (global.get $n) (i32.const 1)))
        (br_if $again (i32.and (global.get $n) (i32.const 2)))
        (local.set $to (i32.const 1))
        (br $again))
      (loop $within
        (block $two
          (block $one
            (br_table $one $two (local.get $inner)))
          (local.set $inner (i32.const 1))
          (br $within))
        (local.set $inner (i32.const 0))
        (local.set $to (i32.const 0))
        (br $again)))))
