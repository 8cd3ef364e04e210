// file_pread_pwrite: reading and writing at an offset do not change the file's own offset.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, "at", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  CHECK(put_at(fd, "hello", 0) == 5 && offset_of(fd) == 0);
  CHECK(put_at(fd, "p", 4) == 1 && offset_of(fd) == 0);
  CHECK(holds(fd, "hellp") && offset_of(fd) == 0);
  __wasi_ciovec_t parts[2] = {{(uint8_t *)"ab", 2}, {(uint8_t *)"cd", 2}};
  __wasi_size_t n;
  OK(__wasi_fd_pwrite(fd, parts, 2, 1, &n));
  CHECK(n == 4 && holds(fd, "habcd"));
}
