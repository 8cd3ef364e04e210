// path_exists: files and folders are found by path, also from an opened folder.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("exists");
  __wasi_filestat_t st;
  create_file(dir, "file");
  OK(stat_at(dir, "file", 0, &st));
  CHECK(st.filetype == __WASI_FILETYPE_REGULAR_FILE);
  OK(stat_at(ROOT, "exists/file", FOLLOW, &st));
  OK(stat_at(dir, ".", 0, &st));
  CHECK(st.filetype == __WASI_FILETYPE_DIRECTORY);
  FAILS(stat_at(dir, "none", 0, &st), NOENT);
  FAILS(stat_at(dir, "file/", 0, &st), NOTDIR);
}
