;; Runs forever in its start section, before anything is called.
(module
  (memory (export "memory") 1)
  (func $s (loop (br 0))) (start $s)
  (func (export "_start") nop))
