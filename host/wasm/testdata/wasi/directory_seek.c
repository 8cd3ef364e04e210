// directory_seek: a folder has no offset, and its rights say so.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("seek");
  __wasi_fdstat_t st;
  uint64_t at;
  FAILS(__wasi_fd_seek(dir, 0, __WASI_WHENCE_CUR, &at), ISDIR);
  OK(__wasi_fd_fdstat_get(dir, &st));
  CHECK(st.fs_filetype == __WASI_FILETYPE_DIRECTORY);
  CHECK(!(st.fs_rights_base & __WASI_RIGHTS_FD_SEEK));
}
