// path_open_missing: a file that does not exist cannot be opened.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  FAILS(open_at(ROOT, "missing", 0, 0, 0, 0, &fd), NOENT);
  FAILS(open_at(ROOT, "missing/file", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd), NOENT);
}
