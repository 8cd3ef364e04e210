// path_rename_dir_trailing_slashes: a slash at the end names a folder, in both names of a rename.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("slashes");
  __wasi_filestat_t st;
  OK(__wasi_path_create_directory(dir, "source"));
  OK(__wasi_path_rename(dir, "source/", dir, "target"));
  OK(__wasi_path_rename(dir, "target", dir, "source/"));
  OK(__wasi_path_rename(dir, "source/", dir, "target/"));
  OK(stat_at(dir, "target", 0, &st));
  create_file(dir, "file");
  FAILS(__wasi_path_rename(dir, "file/", dir, "other"), NOTDIR);
  FAILS(__wasi_path_rename(dir, "file", dir, "other/"), NOTDIR);
  FAILS(__wasi_path_rename(dir, "file/", dir, "other/"), NOTDIR);
  OK(stat_at(dir, "file", 0, &st));
}
