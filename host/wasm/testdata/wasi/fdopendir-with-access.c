// fdopendir-with-access: libc lists a folder that was opened as a file, and opens the files that it finds.
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"

int main(void) {
  CHECK(!mkdir("/listed", 0700));
  CHECK(close(open("/listed/file-0", O_CREAT | O_WRONLY, 0600)) == 0);
  CHECK(close(open("/listed/file-1", O_CREAT | O_WRONLY, 0600)) == 0);
  int fd = open("/listed", O_RDONLY | O_DIRECTORY), n = 0;
  DIR *dir = fdopendir(fd);
  CHECK(dir);
  for (struct dirent *e; (e = readdir(dir));) {
    if (e->d_name[0] == '.') continue;
    struct stat st;
    CHECK(!fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) && st.st_ino == e->d_ino);
    n++;
  }
  CHECK(n == 2);
  closedir(dir);

  dir = opendir("/"); // opened as "." of the granted folder
  CHECK(dir);
  CHECK(openat(dirfd(dir), "listed/file-0", O_RDONLY) > 0);
  CHECK(openat(dirfd(dir), "none", O_RDONLY) < 0);
  return 0;
}
