;; The part of the plugin that is neither QuickJS nor JavaScript: three exports for the host, and the six functions that
;; quickjs.wasm imports from env. build.mjs merges the two modules, which then share one memory. Values of JavaScript are
;; pointers that quickjs.wasm hands out ("handles"). What the prelude cannot do itself goes through one host function,
;; whose first argument is a number: see $host_call.
(module
  (import "quickjs" "memory" (memory 1))
  (import "quickjs" "malloc" (func $malloc (param i32) (result i32)))
  (import "quickjs" "free" (func $free (param i32)))
  (import "quickjs" "_initialize" (func $quickjs_initialize))
  (import "quickjs" "qjs_init" (func $init (result i32)))
  (import "quickjs" "qjs_set_max_stack_size" (func $set_max_stack_size (param i32)))
  (import "quickjs" "qjs_new_host_function" (func $new_host_function (param i32 i32 i32) (result i32)))
  (import "quickjs" "qjs_eval" (func $eval (param i32 i32 i32 i32) (result i32)))
  (import "quickjs" "qjs_call" (func $call (param i32 i32 i32 i32) (result i32)))
  (import "quickjs" "qjs_execute_pending_job" (func $execute_pending_job (result i32)))
  (import "quickjs" "qjs_get_exception" (func $get_exception (result i32)))
  (import "quickjs" "qjs_get_undefined" (func $undefined (result i32)))
  (import "quickjs" "qjs_is_exception" (func $is_exception (param i32) (result i32)))
  (import "quickjs" "qjs_is_string" (func $is_string (param i32) (result i32)))
  (import "quickjs" "qjs_new_string" (func $new_string (param i32 i32) (result i32)))
  (import "quickjs" "qjs_get_string_len" (func $get_string (param i32 i32) (result i32)))
  (import "quickjs" "qjs_free_cstring" (func $free_cstring (param i32)))
  (import "quickjs" "qjs_new_number" (func $new_number (param f64) (result i32)))
  (import "quickjs" "qjs_get_float64" (func $get_number (param i32) (result f64)))
  (import "quickjs" "qjs_free_value" (func $free_value (param i32)))
  (import "parley" "http_request" (func $http_request (param i32 i32) (result i64)))
  (import "parley" "read_secret" (func $read_secret (param i32 i32) (result i64)))
  (import "parley" "log" (func $log (param i32 i32 i32)))
  (import "parley" "progress" (func $progress (param f64 f64 i32 i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))

  ;; The function that the prelude evaluates to. build.mjs runs $boot once and makes its value part of the plugin.
  (global $turn (export "turn") (mut i32) (i32.const 0))
  ;; 128 bytes: a length or an argument at 0, an event of poll_oneoff at 32, its subscription at 64.
  (global $scratch (export "scratch") (mut i32) (i32.const 0))
  ;; Memory that is freed before a program that used all of it is reported.
  (global $reserve (export "reserve") (mut i32) (i32.const 0))

  (func (export "parley_alloc") (param $n i32) (result i32)
    (call $malloc (select (local.get $n) (i32.const 1) (local.get $n))))

  ;; boot(name of the host function, its length, prelude, its length, file name) evaluates the prelude, which must be a
  ;; function of the host function, and keeps what it returns. It returns 0 if something failed.
  (func (export "boot") (param $name i32) (param $name_len i32) (param $text i32) (param $len i32) (param $file i32)
    (result i32) (local $prelude i32)
    (call $quickjs_initialize)
    (if (call $init) (then (return (i32.const 0))))
    (call $set_max_stack_size (i32.const 262144)) ;; of 1 MiB: native frames that do not check it follow
    (global.set $scratch (call $malloc (i32.const 128)))
    (global.set $reserve (call $malloc (i32.const 131072)))
    (local.set $prelude (call $eval (local.get $text) (local.get $len) (local.get $file) (i32.const 8))) ;; strict
    (if (call $is_exception (local.get $prelude)) (then (return (i32.const 0))))
    (i32.store (global.get $scratch) (call $new_host_function (local.get $name) (local.get $name_len) (i32.const 0)))
    (global.set $turn
      (call $call (local.get $prelude) (call $undefined) (i32.const 1) (global.get $scratch)))
    (i32.eqz (call $is_exception (global.get $turn))))

  (func (export "parley_call") (param $ptr i32) (param $len i32) (result i64)
    (call $run (local.get $ptr) (local.get $len)))

  (func (export "parley_resume") (param $ptr i32) (param $len i32) (result i64)
    (call $run (local.get $ptr) (local.get $len)))

  ;; run hands a text of the host to the prelude, runs all jobs, and asks the prelude for the response: turn(text), then
  ;; turn() until it returns a text. Timers make that several times.
  (func $run (param $ptr i32) (param $len i32) (result i64) (local $arg i32) (local $out i32) (local $text i32)
    (local $tries i32)
    (local.set $arg (call $new_string (local.get $ptr) (local.get $len)))
    (call $free (local.get $ptr))
    (loop $again
      (i32.store (global.get $scratch) (local.get $arg))
      (local.set $out (call $call (global.get $turn) (call $undefined)
        (i32.ne (local.get $arg) (i32.const 0)) (global.get $scratch)))
      (if (local.get $arg) (then (call $free_value (local.get $arg)) (local.set $arg (i32.const 0))))
      (if (call $is_exception (local.get $out))
        (then ;; out of memory, or of stack: once more, with the reserve
          (call $free_value (call $get_exception))
          (call $free_reserve)
          (local.set $tries (i32.add (local.get $tries) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $tries) (i32.const 3)))
          (unreachable)))
      (if (call $is_string (local.get $out))
        (then
          (local.set $text (call $get_string (local.get $out) (global.get $scratch)))
          (if (local.get $text) (then (return (call $pack (local.get $text) (i32.load (global.get $scratch))))))
          (call $free_reserve)))
      (call $free_value (local.get $out))
      (loop $jobs (br_if $jobs (i32.gt_s (call $execute_pending_job) (i32.const 0))))
      (br $again))
    (unreachable))

  (func $free_reserve
    (if (global.get $reserve) (then (call $free (global.get $reserve)) (global.set $reserve (i32.const 0)))))

  (func $pack (param $ptr i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $ptr)) (i64.const 32)) (i64.extend_i32_u (local.get $len))))

  ;; host_call serves the prelude. The handle that it returns belongs to the caller; 0 means that it threw.
  (func (export "host_call") (param $name i32) (param $name_len i32) (param $this i32) (param $argc i32)
    (param $argv i32) (result i32) (local $op i32) (local $ptr i32) (local $result i32)
    (local.set $op (i32.trunc_sat_f64_s (call $number (local.get $argv) (i32.const 0))))
    (if (i32.eqz (local.get $op)) ;; 0: a random number in [0, 1)
      (then
        (drop (call $random_get (global.get $scratch) (i32.const 8)))
        (return (call $new_number (f64.mul
          (f64.convert_i64_u (i64.shr_u (i64.load (global.get $scratch)) (i64.const 11)))
          (f64.const 0x1p-53))))))
    (if (i32.eq (local.get $op) (i32.const 1)) ;; 1: sleep(milliseconds)
      (then (call $sleep (call $number (local.get $argv) (i32.const 1))) (return (call $undefined))))
    ;; All others have a text as their second argument.
    (local.set $ptr (call $get_string (i32.load offset=4 (local.get $argv)) (global.get $scratch)))
    (if (i32.eqz (local.get $ptr)) (then (return (i32.const 0))))
    (local.set $result
      (call $text_call (local.get $op) (local.get $argv) (local.get $ptr) (i32.load (global.get $scratch))))
    (call $free_cstring (local.get $ptr))
    (local.get $result))

  (func $text_call (param $op i32) (param $argv i32) (param $ptr i32) (param $len i32) (result i32)
    (if (i32.eq (local.get $op) (i32.const 2)) ;; 2: http_request(text)
      (then (return (call $take (call $http_request (local.get $ptr) (local.get $len))))))
    (if (i32.eq (local.get $op) (i32.const 3)) ;; 3: read_secret(text)
      (then (return (call $take (call $read_secret (local.get $ptr) (local.get $len))))))
    (if (i32.eq (local.get $op) (i32.const 4)) ;; 4: log(text, level)
      (then
        (call $log (i32.trunc_sat_f64_s (call $number (local.get $argv) (i32.const 2))) (local.get $ptr) (local.get $len))
        (return (call $undefined))))
    (if (i32.eq (local.get $op) (i32.const 5)) ;; 5: progress(text, done, total)
      (then
        (call $progress (call $number (local.get $argv) (i32.const 2)) (call $number (local.get $argv) (i32.const 3))
          (local.get $ptr) (local.get $len))
        (return (call $undefined))))
    ;; 6: eval(text, file, flags)
    (call $evaluate (local.get $ptr) (local.get $len)
      (call $get_string (i32.load offset=8 (local.get $argv)) (global.get $scratch))
      (i32.trunc_sat_f64_s (call $number (local.get $argv) (i32.const 3)))))

  (func $number (param $argv i32) (param $i i32) (result f64)
    (call $get_number (i32.load (i32.add (local.get $argv) (i32.shl (local.get $i) (i32.const 2))))))

  ;; take makes a string of a reply of the host, and frees the reply.
  (func $take (param $reply i64) (result i32) (local $ptr i32) (local $handle i32)
    (local.set $ptr (i32.wrap_i64 (i64.shr_u (local.get $reply) (i64.const 32))))
    (local.set $handle (call $new_string (local.get $ptr) (i32.wrap_i64 (local.get $reply))))
    (call $free (local.get $ptr))
    (local.get $handle))

  (func $evaluate (param $ptr i32) (param $len i32) (param $file i32) (param $flags i32) (result i32) (local $out i32)
    (local.set $out (call $eval (local.get $ptr) (local.get $len) (local.get $file) (local.get $flags)))
    (if (call $is_exception (local.get $out)) (then (return (i32.const 0))))
    (local.get $out))

  ;; sleep waits with one relative subscription of the monotonic clock.
  (func $sleep (param $ms f64) (local $s i32)
    (local.set $s (i32.add (global.get $scratch) (i32.const 64)))
    (memory.fill (local.get $s) (i32.const 0) (i32.const 48))
    (i32.store offset=16 (local.get $s) (i32.const 1))
    (i64.store offset=24 (local.get $s) (i64.trunc_sat_f64_u (f64.mul (local.get $ms) (f64.const 1e6))))
    (drop (call $poll_oneoff (local.get $s) (i32.add (global.get $scratch) (i32.const 32)) (i32.const 1)
      (global.get $scratch))))

  ;; Not used: loops are ended by the host, and scripts import nothing.
  (func (export "host_interrupt") (result i32) (i32.const 0))
  (func (export "host_promise_rejection") (param $promise i32) (param $reason i32) (param $handled i32))
  (func (export "host_module_normalize") (param i32 i32) (result i32) (i32.const 0))
  (func (export "host_module_load") (param i32 i32) (result i32) (i32.const 0))
  (func (export "host_get_timezone_offset") (param i32 i32) (result i32) (i32.const 0)))
