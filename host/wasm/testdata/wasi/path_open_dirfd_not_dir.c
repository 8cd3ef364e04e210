// path_open_dirfd_not_dir: a file is not a folder to open from.
#include "check.h"

int main(void) {
  __wasi_fd_t file, fd;
  OK(open_at(ROOT, "not-dir", 0, __WASI_OFLAGS_CREAT, RW, 0, &file));
  FAILS(open_at(file, "foo", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd), NOTDIR);
}
