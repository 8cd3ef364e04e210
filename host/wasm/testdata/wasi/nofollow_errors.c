// nofollow_errors: without LOOKUP_SYMLINK_FOLLOW a link is not opened; "to-dir" and "to-file" already exist.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  int e = open_at(ROOT, "to-dir", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd);
  CHECK(e == __WASI_ERRNO_LOOP || e == __WASI_ERRNO_NOTDIR);
  FAILS(open_at(ROOT, "to-dir", 0, 0, 0, 0, &fd), LOOP);
  OK(open_at(ROOT, "to-dir", FOLLOW, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd));
  FAILS(open_at(ROOT, "to-file", 0, 0, 0, 0, &fd), LOOP);
  FAILS(open_at(ROOT, "to-file", FOLLOW, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd), NOTDIR);
  OK(open_at(ROOT, "to-file", FOLLOW, 0, 0, 0, &fd));
}
