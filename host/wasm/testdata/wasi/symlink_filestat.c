// symlink_filestat: a link has its own type, size and times; with the follow flag those of its target are read and set.
#include "check.h"

int main(void) {
  __wasi_filestat_t link, file, after;
  OK(stat_at(ROOT, "to-file", 0, &link));
  OK(stat_at(ROOT, "file", 0, &file));
  CHECK(link.filetype == __WASI_FILETYPE_SYMBOLIC_LINK && link.size == 4 && link.ino != file.ino);
  OK(stat_at(ROOT, "to-file", FOLLOW, &after));
  CHECK(after.filetype == __WASI_FILETYPE_REGULAR_FILE && after.ino == file.ino && after.size == file.size);
  OK(__wasi_path_filestat_set_times(ROOT, FOLLOW, "to-file", 0, file.mtim - 100, __WASI_FSTFLAGS_MTIM));
  OK(stat_at(ROOT, "file", 0, &after));
  CHECK(after.mtim == file.mtim - 100);
  OK(stat_at(ROOT, "to-file", 0, &after));
  CHECK(after.mtim == link.mtim);
}
