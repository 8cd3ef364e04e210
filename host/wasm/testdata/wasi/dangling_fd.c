// dangling_fd: files and folders can be used through their descriptors after they were removed.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("dangle"), fd;
  OK(open_at(dir, "file", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  OK(__wasi_path_unlink_file(dir, "file"));
  CHECK(put(fd, "text") == 4 && holds(fd, "text"));
  FAILS(open_at(dir, "file", 0, 0, 0, 0, &(__wasi_fd_t){0}), NOENT);
  OK(close_fd(fd));
  OK(__wasi_path_create_directory(dir, "sub"));
  OK(open_at(dir, "sub", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd));
  OK(__wasi_path_remove_directory(dir, "sub"));
  FAILS(open_at(fd, "file", 0, __WASI_OFLAGS_CREAT, RW, 0, &(__wasi_fd_t){0}), NOENT);
  OK(close_fd(fd));
}
