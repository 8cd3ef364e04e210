// remove_directory_trailing_slashes: a folder can be removed with a slash at its end, a file cannot.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("removed");
  OK(__wasi_path_create_directory(dir, "one"));
  OK(__wasi_path_remove_directory(dir, "one"));
  OK(__wasi_path_create_directory(dir, "one"));
  OK(__wasi_path_remove_directory(dir, "one/"));
  create_file(dir, "file");
  FAILS(__wasi_path_remove_directory(dir, "file"), NOTDIR);
  FAILS(__wasi_path_remove_directory(dir, "file/"), NOTDIR);
}
