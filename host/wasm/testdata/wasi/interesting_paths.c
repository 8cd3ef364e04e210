// interesting_paths: unusual spellings of paths have their usual meaning, and none leads out of the folder.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("paths"), fd;
  OK(__wasi_path_create_directory(dir, "dir"));
  OK(__wasi_path_create_directory(dir, "dir/nested"));
  create_file(dir, "dir/nested/file");
  FAILS(open_at(dir, "/dir/nested/file", 0, 0, 0, 0, &fd), PERM);
  OK(open_at(dir, "dir/.//nested/../../dir/nested/../nested///./file", 0, 0, 0, 0, &fd));
  FAILS(open_at(dir, "dir/nested/file/", 0, 0, 0, 0, &fd), NOTDIR);
  FAILS(open_at(dir, "dir/nested/file///", 0, 0, 0, 0, &fd), NOTDIR);
  OK(open_at(dir, "dir/nested/", 0, 0, 0, 0, &fd));
  OK(open_at(dir, "dir/nested///", 0, 0, 0, 0, &fd));
  FAILS(open_at(dir, "dir/nested/../../../paths/dir/nested/file", 0, 0, 0, 0, &fd), PERM);
  OK(open_at(dir, ".", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd)); // a folder opened as "." is a root itself
  OK(open_at(fd, "dir/nested/file", 0, 0, 0, 0, &fd));
  OK(open_at(ROOT, ".", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd));
  OK(open_at(fd, "paths/dir", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd));
  FAILS(open_at(fd, "../../..", 0, 0, 0, 0, &fd), PERM);
}
