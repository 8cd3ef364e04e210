// overwrite_preopen: the number of a granted folder cannot be given to another file.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, ".", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd));
  FAILS(__wasi_fd_renumber(fd, ROOT), NOTSUP);
  OK(open_at(ROOT, ".", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd));
}
