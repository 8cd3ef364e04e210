;; Eight tables, each grown until that is refused.
(module
  (memory (export "memory") 1)
  (table 0 funcref) (table 0 funcref) (table 0 funcref) (table 0 funcref) (table 0 funcref) (table 0 funcref) (table 0 funcref) (table 0 funcref) 
  (func (export "_start") (loop (br_if 0 (i32.ne (table.grow 0 (ref.null func) (i32.const 65536)) (i32.const -1)))) (loop (br_if 0 (i32.ne (table.grow 1 (ref.null func) (i32.const 65536)) (i32.const -1)))) (loop (br_if 0 (i32.ne (table.grow 2 (ref.null func) (i32.const 65536)) (i32.const -1)))) (loop (br_if 0 (i32.ne (table.grow 3 (ref.null func) (i32.const 65536)) (i32.const -1)))) (loop (br_if 0 (i32.ne (table.grow 4 (ref.null func) (i32.const 65536)) (i32.const -1)))) (loop (br_if 0 (i32.ne (table.grow 5 (ref.null func) (i32.const 65536)) (i32.const -1)))) (loop (br_if 0 (i32.ne (table.grow 6 (ref.null func) (i32.const 65536)) (i32.const -1)))) (loop (br_if 0 (i32.ne (table.grow 7 (ref.null func) (i32.const 65536)) (i32.const -1))))))
