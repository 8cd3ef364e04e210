// truncation_rights: a file that is open only for reading cannot be resized.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("rights"), fd;
  OK(open_at(dir, "file", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  put(fd, "text");
  OK(__wasi_fd_filestat_set_size(fd, 2));
  CHECK(holds(fd, "te"));
  OK(open_at(dir, "file", 0, 0, __WASI_RIGHTS_FD_READ, 0, &fd));
  int e = __wasi_fd_filestat_set_size(fd, 0);
  CHECK(e == __WASI_ERRNO_BADF || e == __WASI_ERRNO_INVAL);
  CHECK(stat_of(fd).size == 2);
}
