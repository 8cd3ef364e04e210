// path_open_read_write: a descriptor can only read or write as it was opened.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("modes"), fd;
  char buf[8];
  __wasi_iovec_t in = {(uint8_t *)buf, sizeof buf};
  __wasi_ciovec_t out = {(uint8_t *)buf, sizeof buf};
  __wasi_size_t n;
  create_file(dir, "file");
  OK(open_at(dir, "file", 0, 0, __WASI_RIGHTS_FD_READ, 0, &fd));
  OK(__wasi_fd_read(fd, &in, 1, &n));
  FAILS(__wasi_fd_write(fd, &out, 1, &n), BADF);
  OK(open_at(dir, "file", 0, 0, __WASI_RIGHTS_FD_WRITE, 0, &fd));
  FAILS(__wasi_fd_read(fd, &in, 1, &n), BADF);
  OK(__wasi_fd_write(fd, &out, 1, &n));
  OK(open_at(dir, "file", 0, 0, RW, 0, &fd));
  OK(__wasi_fd_write(fd, &out, 1, &n));
  OK(__wasi_fd_read(fd, &in, 1, &n));
}
