// file_allocate: allocating grows a file and never shrinks it.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, "allocated", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  OK(__wasi_fd_allocate(fd, 0, 100));
  CHECK(stat_of(fd).size == 100);
  OK(__wasi_fd_allocate(fd, 10, 10));
  CHECK(stat_of(fd).size == 100);
  OK(__wasi_fd_allocate(fd, 90, 20));
  CHECK(stat_of(fd).size == 110);
}
