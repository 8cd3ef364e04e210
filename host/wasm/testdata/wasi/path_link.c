// path_link: a hard link is the same file; links to folders and to existing names fail.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("links");
  __wasi_filestat_t a, b;
  create_file(dir, "file");
  OK(__wasi_path_create_directory(dir, "sub"));
  OK(__wasi_path_link(dir, 0, "file", dir, "sub/link"));
  OK(stat_at(dir, "file", 0, &a));
  OK(stat_at(dir, "sub/link", 0, &b));
  CHECK(a.ino == b.ino && a.dev == b.dev && a.nlink == 2 && b.nlink == 2);
  FAILS(__wasi_path_link(dir, 0, "file", dir, "sub/link"), EXIST);
  FAILS(__wasi_path_link(dir, 0, "file", dir, "file"), EXIST);
  FAILS(__wasi_path_link(dir, 0, "file", dir, "sub"), EXIST);
  FAILS(__wasi_path_link(dir, 0, "sub", dir, "link"), PERM);
  FAILS(__wasi_path_link(dir, 0, "file", dir, "link/"), NOENT);
  FAILS(stat_at(dir, "link", 0, &a), NOENT);
}
