// remove_nonempty_directory: a folder that is not empty cannot be removed.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("full");
  OK(__wasi_path_create_directory(dir, "sub"));
  FAILS(__wasi_path_remove_directory(ROOT, "full"), NOTEMPTY);
  OK(__wasi_path_remove_directory(dir, "sub"));
  OK(__wasi_path_remove_directory(ROOT, "full"));
}
