;; Imports a function whose name clears a terminal.
(module
  (import "\1b[2J\1b[1;1H" "\e2\80\ae" (func))
  (memory (export "memory") 1)
  (func (export "_start") nop))
