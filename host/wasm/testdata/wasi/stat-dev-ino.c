// stat-dev-ino: device and inode numbers identify files.
#include "check.h"

int main(void) {
  __wasi_fd_t dir = scratch("inodes");
  __wasi_filestat_t a, b, again;
  create_file(dir, "a");
  create_file(dir, "b");
  OK(stat_at(dir, "a", 0, &a));
  OK(stat_at(dir, "b", 0, &b));
  OK(stat_at(ROOT, "inodes/a", FOLLOW, &again));
  CHECK(a.dev == b.dev && a.ino != b.ino && a.ino == again.ino && a.dev == again.dev);
}
