// fstflags_validate: a time cannot be set both to a value and to now.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, "timed", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  const int both[2] = {__WASI_FSTFLAGS_ATIM | __WASI_FSTFLAGS_ATIM_NOW, __WASI_FSTFLAGS_MTIM | __WASI_FSTFLAGS_MTIM_NOW};
  for (int i = 0; i < 2; i++) {
    FAILS(__wasi_fd_filestat_set_times(fd, 1, 1, both[i]), INVAL);
    FAILS(__wasi_path_filestat_set_times(ROOT, 0, "timed", 1, 1, both[i]), INVAL);
  }
}
