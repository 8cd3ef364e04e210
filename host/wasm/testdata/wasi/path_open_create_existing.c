// path_open_create_existing: O_CREAT with O_EXCL fails if the file exists.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  create_file(ROOT, "existing");
  FAILS(open_at(ROOT, "existing", 0, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_EXCL, RW, 0, &fd), EXIST);
  OK(open_at(ROOT, "existing", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
}
