;; A module with a function but without exports.
(module (memory 1) (func (drop (i32.const 1))))
