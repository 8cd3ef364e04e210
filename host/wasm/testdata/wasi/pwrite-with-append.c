// pwrite-with-append: with append, a write at an offset does not change the file's own offset.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, "appended", 0, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_TRUNC, RW, __WASI_FDFLAGS_APPEND, &fd));
  put(fd, "aa");
  seek(fd, 0, __WASI_WHENCE_SET);
  put(fd, "bb");
  CHECK(offset_of(fd) == 4);
  CHECK(put_at(fd, "ccc", 0) == 3);
  CHECK(offset_of(fd) == 4);
  uint64_t end = seek(fd, 0, __WASI_WHENCE_END);
  CHECK(end == 4 || end == 7); // POSIX writes at the offset, Linux at the end
}
