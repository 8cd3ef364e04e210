// image: a parley/1 guest with much to do before its first call, whose result shows the state in which a call begins.
// A test can change the mode in the compiled module, to have other things done before the first call.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wasi/api.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define TABLE (512 << 10)

__attribute__((import_module("parley"), import_name("log"))) void host_log(int32_t level, const char *text, uint32_t len);

static volatile char mode[] = "the mode is .";
static uint8_t *table; // allocated: memory grows before the first call
static char greeting[32];
static unsigned char random_bytes[4];
static uint64_t ticks;
static int calls;
static void *volatile unused;

static uint64_t now(__wasi_clockid_t clock) {
  __wasi_timestamp_t t = 0;
  (void)__wasi_clock_time_get(clock, 1, &t);
  return t;
}

__attribute__((constructor)) static void initialize(void) {
  table = malloc(TABLE);
  for (uint32_t i = 0; i < TABLE; i++) table[i] = (uint8_t)(i * 7 + 1);
  (void)__wasi_random_get(random_bytes, sizeof random_bytes);
  ticks = now(__WASI_CLOCKID_MONOTONIC);
  int fd = open("/lib/greeting", O_RDONLY);
  if (fd >= 0) {
    (void)read(fd, greeting, sizeof greeting - 1);
    if (mode[12] != 'o') close(fd);
  }
  switch (mode[12]) {
  case 'l': host_log(1, "hello", 5); break;
  case 'e': fputs("hello\n", stderr); break;
  case 't': __builtin_trap();
  case 'x': exit(3);
  case 'w': now(__WASI_CLOCKID_REALTIME); break;
  case 's': (void)usleep(1000); break;
  case 'm': unused = malloc(80 << 20); break;
  case '8':
    for (volatile uint64_t n = 0;; n++) {}
  }
}

EXPORT("parley_alloc") void *parley_alloc(uint32_t len) { return malloc(len ? len : 1); }

EXPORT("parley_call") uint64_t parley_call(const char *request, uint32_t len) {
  (void)request, (void)len;
  if (mode[12] == 'L') host_log(1, "call", 4);
  unsigned char more[4];
  uint32_t sum = 0;
  for (uint32_t i = 0; i < TABLE; i++) sum += table[i];
  memset(table, calls + 1, TABLE); // another call must not see it
  (void)__wasi_random_get(more, sizeof more);
  char *out = malloc(512);
  int n = sprintf(out,
                  "{\"ok\":true,\"result\":{\"sum\":%u,\"calls\":%d,\"greeting\":\"%s\",\"random\":[%d,%d,%d,%d,%d,%d,%d,%d],"
                  "\"later\":%s}}",
                  sum, ++calls, greeting, random_bytes[0], random_bytes[1], random_bytes[2], random_bytes[3], more[0],
                  more[1], more[2], more[3], now(__WASI_CLOCKID_MONOTONIC) >= ticks && ticks > 0 ? "true" : "false");
  return (uint64_t)(uintptr_t)out << 32 | (uint32_t)n;
}
