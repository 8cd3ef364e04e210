;; A name section that names the module like what the host adds to all. It ends well, and nothing else may notice. Built with --debug-names.
(module $parley:host
  (memory (export "memory") 1)
  (func (export "_start") nop))
