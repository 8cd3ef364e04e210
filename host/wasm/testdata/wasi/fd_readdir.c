// fd_readdir: entries have the inode numbers of what they name, and cookies continue where a buffer ended.
#include "check.h"

static uint8_t buf[256];

int main(void) {
  __wasi_fd_t dir = scratch("entries");
  for (int i = 0; i < 100; i++) create_file(dir, (char[]){'f', '0' + i / 10, '0' + i % 10, 0});
  int entries = 0;
  uint64_t cookie = 0;
  for (__wasi_size_t used = sizeof buf; used == sizeof buf;) {
    OK(__wasi_fd_readdir(dir, buf, sizeof buf, cookie, &used));
    for (__wasi_size_t at = 0; at + sizeof(__wasi_dirent_t) <= used;) {
      __wasi_dirent_t e;
      memcpy(&e, buf + at, sizeof e);
      if (at + sizeof e + e.d_namlen > used) break;
      char name[64] = {0};
      memcpy(name, buf + at + sizeof e, e.d_namlen);
      if (strcmp(name, "..")) {
        __wasi_filestat_t st;
        OK(stat_at(dir, name, 0, &st));
        CHECK(st.ino == e.d_ino && st.ino && st.filetype == e.d_type);
      }
      at += sizeof e + e.d_namlen, cookie = e.d_next, entries++;
    }
  }
  CHECK(entries == 102);
}
