// path_open_preopen: a granted folder can be opened again, but never for writing.
#include "check.h"

int main(void) {
  __wasi_fd_t fd, below = scratch("below");
  __wasi_fdstat_t st;
  OK(__wasi_fd_fdstat_get(ROOT, &st));
  OK(open_at(ROOT, ".", 0, 0, st.fs_rights_base, 0, &fd));
  OK(open_at(ROOT, ".", 0, 0, 0, 0, &fd));
  OK(open_at(ROOT, ".", 0, __WASI_OFLAGS_DIRECTORY, __WASI_RIGHTS_FD_READ, 0, &fd));
  FAILS(open_at(ROOT, ".", 0, __WASI_OFLAGS_DIRECTORY, RW, 0, &fd), ISDIR);
  FAILS(open_at(below, ".", 0, __WASI_OFLAGS_DIRECTORY, RW, 0, &fd), ISDIR);
  FAILS(open_at(ROOT, "below", 0, __WASI_OFLAGS_DIRECTORY, __WASI_RIGHTS_FD_WRITE, 0, &fd), ISDIR);
  FAILS(open_at(ROOT, "below", 0, 0, RW, 0, &fd), ISDIR);
  create_file(ROOT, "file-for-dir");
  FAILS(open_at(ROOT, "file-for-dir", 0, __WASI_OFLAGS_DIRECTORY, RW, 0, &fd), NOTDIR);
}
