// dir_fd_op_failures: operations on files fail on a folder.
#include "check.h"

int main(void) {
  __wasi_fd_t dirs[2] = {ROOT, scratch("ops")};
  for (int i = 0; i < 2; i++) {
    __wasi_fd_t dir = dirs[i];
    char buf[8];
    __wasi_iovec_t in = {(uint8_t *)buf, sizeof buf};
    __wasi_ciovec_t out = {(uint8_t *)buf, sizeof buf};
    __wasi_size_t n;
    uint64_t at;
    FAILS(__wasi_fd_read(dir, &in, 1, &n), ISDIR);
    FAILS(__wasi_fd_pread(dir, &in, 1, 0, &n), ISDIR);
    int e = __wasi_fd_write(dir, &out, 1, &n);
    CHECK(e == __WASI_ERRNO_ISDIR || e == __WASI_ERRNO_BADF);
    e = __wasi_fd_pwrite(dir, &out, 1, 0, &n);
    CHECK(e == __WASI_ERRNO_ISDIR || e == __WASI_ERRNO_BADF);
    FAILS(__wasi_fd_seek(dir, 0, __WASI_WHENCE_SET, &at), ISDIR);
    FAILS(__wasi_fd_seek(dir, 0, __WASI_WHENCE_END, &at), ISDIR);
    FAILS(__wasi_fd_tell(dir, &at), ISDIR);
    e = __wasi_fd_filestat_set_size(dir, 0);
    CHECK(e == __WASI_ERRNO_ISDIR || e == __WASI_ERRNO_BADF || e == __WASI_ERRNO_INVAL);
  }
}
