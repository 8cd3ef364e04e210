;; A module that does something and exports nothing.
(module (memory 1) (func (drop (i32.const 1))))
