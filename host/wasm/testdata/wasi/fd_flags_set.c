// fd_flags_set: append can be set when a file is opened, and switched off and on again later.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  __wasi_fdstat_t st;
  OK(open_at(ROOT, "flags", 0, __WASI_OFLAGS_CREAT, RW, __WASI_FDFLAGS_APPEND, &fd));
  put(fd, "aa");
  seek(fd, 0, __WASI_WHENCE_SET);
  put(fd, "bb");
  CHECK(holds(fd, "aabb"));
  OK(__wasi_fd_fdstat_get(fd, &st));
  CHECK(st.fs_flags & __WASI_FDFLAGS_APPEND);

  OK(__wasi_fd_fdstat_set_flags(fd, 0));
  OK(__wasi_fd_fdstat_get(fd, &st));
  CHECK(!(st.fs_flags & __WASI_FDFLAGS_APPEND));
  seek(fd, 0, __WASI_WHENCE_SET);
  put(fd, "c");
  CHECK(holds(fd, "cabb"));
  CHECK(put_at(fd, "d", 2) == 1 && holds(fd, "cadb"));

  OK(__wasi_fd_fdstat_set_flags(fd, __WASI_FDFLAGS_APPEND));
  seek(fd, 0, __WASI_WHENCE_SET);
  put(fd, "e");
  CHECK(holds(fd, "cadbe"));

  __wasi_fd_t plain; // opened without the flag
  OK(open_at(ROOT, "flags", 0, 0, RW, 0, &plain));
  OK(__wasi_fd_fdstat_set_flags(plain, __WASI_FDFLAGS_APPEND));
  put(plain, "f");
  CHECK(holds(plain, "cadbef"));
}
