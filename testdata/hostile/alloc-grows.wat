;; Allocates all available memory instead of the requested block.
(module
  (memory (export "memory") 1)
  (func (export "parley_alloc") (param i32) (result i32) (loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) i32.const 0)
  (func (export "parley_call") (param i32 i32) (result i64) i64.const 0))
