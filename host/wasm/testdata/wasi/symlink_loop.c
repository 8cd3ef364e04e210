// symlink_loop: an existing link to itself cannot be opened.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  __wasi_filestat_t st;
  FAILS(open_at(ROOT, "loop", 0, 0, 0, 0, &fd), LOOP);
  FAILS(open_at(ROOT, "loop", FOLLOW, 0, 0, 0, &fd), LOOP);
  FAILS(open_at(ROOT, "loop/file", 0, 0, 0, 0, &fd), LOOP);
  FAILS(stat_at(ROOT, "loop", FOLLOW, &st), LOOP);
  OK(stat_at(ROOT, "loop", 0, &st));
  CHECK(st.filetype == __WASI_FILETYPE_SYMBOLIC_LINK);
}
