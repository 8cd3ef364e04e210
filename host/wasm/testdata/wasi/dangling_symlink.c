// dangling_symlink: an existing dangling link cannot be opened, but can be removed.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  __wasi_filestat_t st;
  int e = open_at(ROOT, "dangling", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd);
  CHECK(e == __WASI_ERRNO_LOOP || e == __WASI_ERRNO_NOTDIR);
  FAILS(open_at(ROOT, "dangling", 0, 0, 0, 0, &fd), LOOP);
  FAILS(open_at(ROOT, "dangling", FOLLOW, 0, 0, 0, &fd), NOENT);
  FAILS(stat_at(ROOT, "dangling", FOLLOW, &st), NOENT);
  OK(__wasi_path_unlink_file(ROOT, "dangling"));
  FAILS(stat_at(ROOT, "dangling", 0, &st), NOENT);
}
