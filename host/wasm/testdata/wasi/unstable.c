// unstable: the layouts of the draft before preview 1, which differ for whence, filestat and subscription. The names of
// errors are those of preview 1, which are the same.
#include "check.h"

#define DRAFT(name) __attribute__((import_module("wasi_unstable"), import_name(name)))

struct filestat {
  uint64_t dev, ino;
  uint8_t type;
  uint32_t nlink;
  uint64_t size, atim, mtim, ctim;
};
enum { CLOCK, READ, UNKNOWN = 3 };
struct subscription {
  uint64_t userdata;
  uint8_t type;
  union {
    struct {
      uint64_t identifier;
      uint32_t id;
      uint64_t timeout, precision;
      uint16_t flags;
    } clock;
    uint32_t fd;
  };
};
_Static_assert(sizeof(struct filestat) == 56 && sizeof(struct subscription) == 56, "layouts of the draft");
enum { CUR, END, SET };

DRAFT("path_filestat_get") int path_stat(int dir, int lookup, const char *path, int n, struct filestat *st);
DRAFT("fd_filestat_get") int fd_stat(int fd, void *st);
DRAFT("fd_seek") int draft_seek(int fd, int64_t by, int whence, uint64_t *at);
DRAFT("poll_oneoff") int draft_poll(const struct subscription *in, __wasi_event_t *out, int n, int *ready);

static struct {
  struct filestat stat;
  char behind[16];
} s = {.behind = "unchanged bytes"};

static void check_stat(void) {
  CHECK(s.stat.type == __WASI_FILETYPE_REGULAR_FILE && s.stat.nlink == 1 && s.stat.size == 10);
  CHECK(s.stat.mtim > 1000000000000000000 && s.stat.ctim > 1000000000000000000 && s.stat.atim > 1000000000000000000);
  CHECK(!strcmp(s.behind, "unchanged bytes"));
}

static uint64_t monotonic(void) {
  uint64_t t;
  OK(__wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 0, &t));
  return t;
}

int main(void) {
  __wasi_fd_t fd;
  uint64_t at;
  OK(open_at(ROOT, "draft", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  put(fd, "0123456789");
  OK(path_stat(ROOT, 0, "draft", 5, &s.stat));
  check_stat();
  memset(&s.stat, 0, sizeof s.stat);
  OK(fd_stat(fd, &s.stat));
  check_stat();
  s.stat.size = 1;
  FAILS(path_stat(ROOT, 0, "none", 4, &s.stat), NOENT);
  CHECK(s.stat.size == 1 && !strcmp(s.behind, "unchanged bytes"));
  char *end = (char *)(__builtin_wasm_memory_size(0) * 65536);
  OK(fd_stat(fd, end - 64));
  FAILS(fd_stat(fd, end - 8), FAULT);

  OK(draft_seek(fd, -2, END, &at));
  CHECK(at == 8);
  OK(draft_seek(fd, 1, CUR, &at));
  CHECK(at == 9);
  OK(draft_seek(fd, 4, SET, &at));
  CHECK(at == 4);
  FAILS(draft_seek(fd, 4, 3, &at), INVAL);

  __wasi_event_t events[2];
  int ready;
  enum { MS = 1000000 };
  struct subscription in[2] = {{7, CLOCK, {{99, __WASI_CLOCKID_MONOTONIC, 2 * MS, 0, 0}}},
                               {8, CLOCK, {{99, __WASI_CLOCKID_MONOTONIC, 3600000ll * MS, 0, 0}}}};
  uint64_t before = monotonic();
  OK(draft_poll(in, events, 2, &ready));
  CHECK(monotonic() - before >= 2 * MS);
  CHECK(ready == 1 && events[0].userdata == 7 && events[0].type == CLOCK && !events[0].error);
  in[0] = (struct subscription){9, READ, {.fd = 0}};
  OK(draft_poll(in, events, 2, &ready));
  CHECK(ready == 1 && events[0].userdata == 9 && events[0].type == READ);
  in[0] = (struct subscription){10, CLOCK, {{99, __WASI_CLOCKID_MONOTONIC, 1, 0, 1}}}; // a moment that is past
  OK(draft_poll(in, events, 2, &ready));
  CHECK(ready == 1 && events[0].userdata == 10);
  in[0].type = UNKNOWN;
  FAILS(draft_poll(in, events, 1, &ready), INVAL);
  FAILS(draft_poll(in, events, 0, &ready), INVAL);
  FAILS(draft_poll((void *)(end - 8), events, 1, &ready), FAULT);
}
