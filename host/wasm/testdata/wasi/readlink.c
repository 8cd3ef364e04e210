// readlink: existing links within the folder can be read; the targets of links that lead outside cannot.
#include "check.h"

static int read_link(int dir, const char *name, const char *want) {
  char buf[256];
  __wasi_size_t n = 0;
  int e = __wasi_path_readlink(dir, name, (uint8_t *)buf, sizeof buf, &n);
  if (!e) CHECK(n == strlen(want) && !memcmp(buf, want, n));
  return e;
}

int main(void) {
  __wasi_fd_t fd;
  OK(read_link(ROOT, "to-file", "file"));
  OK(read_link(ROOT, "to-dir", "dir"));
  OK(read_link(ROOT, "dangling", "none"));
  OK(read_link(ROOT, "loop", "loop"));
  OK(read_link(ROOT, "dir/up", "../file"));
  OK(open_at(ROOT, "dir", 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd));
  OK(read_link(fd, "up", "../file"));
  FAILS(read_link(ROOT, "absolute", ""), PERM);
  FAILS(read_link(ROOT, "out", ""), PERM);
  FAILS(read_link(ROOT, "out-dangling", ""), PERM);
  FAILS(read_link(ROOT, "dir/out", ""), PERM);
  FAILS(read_link(ROOT, "round", ""), PERM);
  FAILS(read_link(ROOT, "file", ""), INVAL);
}
