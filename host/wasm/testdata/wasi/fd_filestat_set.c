// fd_filestat_set: size and times of an open file can be set.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, "sized", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  OK(__wasi_fd_filestat_set_size(fd, 100));
  __wasi_filestat_t before = stat_of(fd);
  CHECK(before.size == 100);
  OK(__wasi_fd_filestat_set_times(fd, 0, before.mtim - 100, __WASI_FSTFLAGS_MTIM));
  __wasi_filestat_t after = stat_of(fd);
  CHECK(after.size == 100 && after.mtim == before.mtim - 100 && after.atim == before.atim);
}
