;; Fills a kilobyte of each of 128 MiB forever.
(module
  (memory (export "memory") 2048)
  (func (export "_start") (local $x i32)
    (loop
      (memory.fill (local.tee $x (i32.and (i32.add (local.get $x) (i32.const 0x100000)) (i32.const 0x7ffffff))) (i32.const 1) (i32.const 1024))
      (br 0))))
