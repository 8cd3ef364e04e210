// path_rename: files and folders are renamed; a folder replaces an empty folder and nothing else.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("rename");
  __wasi_filestat_t st;
  OK(__wasi_path_create_directory(dir, "source"));
  create_file(dir, "source/file");
  OK(__wasi_path_create_directory(dir, "target"));
  OK(__wasi_path_rename(dir, "source", dir, "target"));
  OK(stat_at(dir, "target/file", 0, &st));
  FAILS(stat_at(dir, "source", 0, &st), NOENT);

  OK(__wasi_path_create_directory(dir, "source"));
  FAILS(__wasi_path_rename(dir, "source", dir, "target"), NOTEMPTY);
  FAILS(__wasi_path_rename(dir, "source", dir, "target/file"), NOTDIR);
  FAILS(__wasi_path_rename(dir, "target/file", dir, "source"), ISDIR);
  OK(__wasi_path_create_directory(dir, "source/inner"));
  FAILS(__wasi_path_rename(dir, "source", dir, "source/inner"), INVAL);
  OK(stat_at(dir, "source/inner", 0, &st));
  OK(__wasi_path_rename(dir, "source", dir, "target/new"));
  OK(stat_at(dir, "target/new/inner", 0, &st));

  create_file(dir, "one");
  create_file(dir, "two");
  OK(__wasi_path_rename(dir, "one", dir, "two"));
  FAILS(stat_at(dir, "one", 0, &st), NOENT);
  OK(__wasi_path_rename(dir, "two", ROOT, "renamed-out")); // to another descriptor of the same grant
  OK(stat_at(ROOT, "renamed-out", 0, &st));
}
