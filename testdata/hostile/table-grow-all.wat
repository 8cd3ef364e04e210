;; Grows eight tables to their limits and fills them.
(module
  (memory (export "memory") 1)
  (table $a 1 externref) (table $b 1 externref) (table $c 1 funcref) (table $d 1 funcref)
  (table $e 1 funcref) (table $f 1 funcref) (table $g 1 funcref) (table $h 1 funcref)
  (func (export "_start")
    (drop (table.grow $a (ref.null extern) (i32.const 262143))) (drop (table.grow $b (ref.null extern) (i32.const 262143)))
    (drop (table.grow $c (ref.null func) (i32.const 262143))) (drop (table.grow $d (ref.null func) (i32.const 262143)))
    (drop (table.grow $e (ref.null func) (i32.const 262143))) (drop (table.grow $f (ref.null func) (i32.const 262143)))
    (drop (table.grow $g (ref.null func) (i32.const 262143))) (drop (table.grow $h (ref.null func) (i32.const 262143)))
    (table.fill $h (i32.const 0) (ref.null func) (i32.const 262144))
    (if (i32.ne (table.grow $h (ref.null func) (i32.const -1)) (i32.const -1)) (then unreachable))))
