// isatty: neither files, folders nor streams are terminals, which programs recognize by the type character device.
#include "check.h"

int main(void) {
  __wasi_fd_t file;
  __wasi_fdstat_t st;
  OK(open_at(ROOT, "typed", 0, __WASI_OFLAGS_CREAT, RW, 0, &file));
  OK(__wasi_fd_fdstat_get(file, &st));
  CHECK(st.fs_filetype == __WASI_FILETYPE_REGULAR_FILE);
  OK(__wasi_fd_fdstat_get(ROOT, &st));
  CHECK(st.fs_filetype == __WASI_FILETYPE_DIRECTORY);
  for (int stream = 0; stream < 3; stream++) {
    OK(__wasi_fd_fdstat_get(stream, &st));
    CHECK(st.fs_filetype != __WASI_FILETYPE_CHARACTER_DEVICE);
  }
}
