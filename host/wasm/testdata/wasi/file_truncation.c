// file_truncation: O_TRUNC empties a file.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, "emptied", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  put(fd, "content");
  OK(close_fd(fd));
  OK(open_at(ROOT, "emptied", 0, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_TRUNC, RW, 0, &fd));
  CHECK(stat_of(fd).size == 0);
}
