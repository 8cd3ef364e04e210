// path_open_nonblock: files and folders can be opened without blocking.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, ".", 0, 0, 0, __WASI_FDFLAGS_NONBLOCK, &fd));
  OK(open_at(ROOT, "eager", 0, __WASI_OFLAGS_CREAT, RW, __WASI_FDFLAGS_NONBLOCK, &fd));
  CHECK(put(fd, "content") == 7);
  CHECK(holds(fd, "content"));
}
