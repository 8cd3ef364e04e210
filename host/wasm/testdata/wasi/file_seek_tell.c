// file_seek_tell: an offset can be set and read, also after the end, but not before the start.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  uint64_t at;
  OK(open_at(ROOT, "sought", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  CHECK(offset_of(fd) == 0);
  put(fd, "0123456789");
  CHECK(offset_of(fd) == 10);
  CHECK(seek(fd, -6, __WASI_WHENCE_CUR) == 4 && offset_of(fd) == 4);
  CHECK(seek(fd, 0, __WASI_WHENCE_END) == 10);
  CHECK(seek(fd, 1000, __WASI_WHENCE_CUR) == 1010);
  FAILS(__wasi_fd_seek(fd, -2000, __WASI_WHENCE_CUR, &at), INVAL);
  CHECK(offset_of(fd) == 1010);
}
