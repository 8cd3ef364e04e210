// path_filestat: size and times of a file are correct, and times can be set by path.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("stat"), fd;
  __wasi_filestat_t st, after;
  __wasi_fdstat_t flags;
  OK(open_at(dir, "file", 0, __WASI_OFLAGS_CREAT, RW, __WASI_FDFLAGS_APPEND, &fd));
  OK(__wasi_fd_fdstat_get(fd, &flags));
  CHECK(flags.fs_flags & __WASI_FDFLAGS_APPEND);
  OK(stat_at(dir, "file", 0, &st));
  CHECK(st.size == 0);
  OK(__wasi_path_filestat_set_times(dir, 0, "file", 0, st.mtim - 100, __WASI_FSTFLAGS_MTIM));
  OK(stat_at(dir, "file", 0, &after));
  CHECK(after.mtim == st.mtim - 100);
}
