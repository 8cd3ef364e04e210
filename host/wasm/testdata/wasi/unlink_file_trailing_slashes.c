// unlink_file_trailing_slashes: a folder is not a file, and neither is a name with a slash at its end.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("unlinked");
  OK(__wasi_path_create_directory(dir, "sub"));
  FAILS(__wasi_path_unlink_file(dir, "sub"), ISDIR);
  FAILS(__wasi_path_unlink_file(dir, "sub/"), ISDIR);
  create_file(dir, "file");
  FAILS(__wasi_path_unlink_file(dir, "file/"), NOTDIR);
  OK(__wasi_path_unlink_file(dir, "file"));
  FAILS(__wasi_path_unlink_file(dir, "file"), NOENT);
}
