;; A name section that names the module like the module that instrumentation adds. It ends successfully, and nothing else may notice. Built with --debug-names.
(module $parley:host
  (memory (export "memory") 1)
  (func (export "_start") nop))
