// close_preopen: a granted folder can be closed; its number is then free and remains unusable.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  __wasi_fdstat_t st;
  FAILS(__wasi_fd_renumber(ROOT, 0), NOTSUP);
  OK(close_fd(ROOT));
  FAILS(__wasi_fd_fdstat_get(ROOT, &st), BADF);
  FAILS(open_at(ROOT, ".", 0, 0, 0, 0, &fd), BADF);
}
