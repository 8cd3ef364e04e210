;; Imports from a module whose name has terminal escapes and hidden characters.
(module
  (import "\1b[2J\1b]0;owned\07\e2\80\aeparley\e2\80\8b" "c\cc\81all\0atool\00" (func))
  (memory (export "memory") 1)
  (func (export "_start") nop))
