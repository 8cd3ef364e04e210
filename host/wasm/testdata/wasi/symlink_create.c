// symlink_create: creating symbolic links is refused, whatever their target.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("symlinks");
  __wasi_filestat_t st;
  create_file(dir, "file");
  const char *targets[] = {"file", "none", ".", "..", "/etc/passwd", "symlink"};
  for (unsigned i = 0; i < sizeof targets / sizeof *targets; i++) {
    FAILS(__wasi_path_symlink(targets[i], dir, "symlink"), PERM);
    FAILS(__wasi_path_symlink(targets[i], ROOT, "symlink"), PERM);
  }
  FAILS(stat_at(dir, "symlink", 0, &st), NOENT);
  FAILS(stat_at(ROOT, "symlink", 0, &st), NOENT);
}
