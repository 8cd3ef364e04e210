// probe: a WASI command that tries one operation on the file system and prints the result.
// clang-14 --target=wasm32-wasi -O2 -s -o probe.wasm probe.c
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int said(int failed) {
  if (failed) printf("errno %s\n", strerror(errno));
  else printf("ok\n");
  return 0;
}

int main(int argc, char **argv) {
  const char *op = argc > 1 ? argv[1] : "", *a = argc > 2 ? argv[2] : "", *b = argc > 3 ? argv[3] : "";
  if (!strcmp(op, "read")) {
    char buf[256];
    int fd = open(a, O_RDONLY);
    if (fd < 0) return said(1);
    int n = read(fd, buf, sizeof buf);
    if (n < 0) return said(1);
    printf("%.*s\n", n, buf);
    return 0;
  }
  if (!strcmp(op, "write") || !strcmp(op, "append")) {
    int fd = open(a, O_WRONLY | O_CREAT | (op[0] == 'a' ? O_APPEND : O_TRUNC), 0600);
    if (fd < 0) return said(1);
    return said(write(fd, b, strlen(b)) < 0 || close(fd) < 0);
  }
  if (!strcmp(op, "create")) return said(open(a, O_RDONLY | O_CREAT, 0600) < 0);
  if (!strcmp(op, "trunc")) return said(open(a, O_RDONLY | O_TRUNC) < 0);
  if (!strcmp(op, "truncate")) return said(truncate(a, 1) < 0);
  if (!strcmp(op, "mkdir")) return said(mkdir(a, 0700) < 0);
  if (!strcmp(op, "rmdir")) return said(rmdir(a) < 0);
  if (!strcmp(op, "unlink")) return said(unlink(a) < 0);
  if (!strcmp(op, "rename")) return said(rename(a, b) < 0);
  if (!strcmp(op, "link")) return said(link(a, b) < 0);
  if (!strcmp(op, "symlink")) return said(symlink(a, b) < 0);
  if (!strcmp(op, "utimes")) {
    struct timespec t[2] = {{1, 0}, {1, 0}};
    return said(utimensat(AT_FDCWD, a, t, 0) < 0);
  }
  if (!strcmp(op, "stat")) {
    struct stat st;
    if (stat(a, &st) < 0) return said(1);
    printf("%s %lld\n", S_ISDIR(st.st_mode) ? "dir" : S_ISREG(st.st_mode) ? "file" : "other", (long long)st.st_size);
    return 0;
  }
  if (!strcmp(op, "list")) {
    DIR *d = opendir(a);
    if (!d) return said(1);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    printf("%d\n", n);
    return 0;
  }
  if (!strcmp(op, "open-many")) {
    int n = 0;
    while (open(a, O_RDONLY) >= 0) n++;
    printf("%d\n", n);
    return 0;
  }
  if (!strcmp(op, "time")) {
    struct timespec wall, before, after;
    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &before);
    usleep(2000);
    clock_gettime(CLOCK_MONOTONIC, &after);
    long long ns = (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec;
    printf("%s %s\n", wall.tv_sec == 0 && wall.tv_nsec == 0 ? "epoch" : "now", ns >= 2000000 ? "runs" : "stands");
    return 0;
  }
  if (!strcmp(op, "random")) {
    unsigned char r[16];
    getentropy(r, sizeof r);
    for (int i = 0; i < 16; i++) printf("%02x", r[i]);
    printf("\n");
    return 0;
  }
  if (!strcmp(op, "env")) {
    extern char **environ;
    for (char **e = environ; e && *e; e++) printf("%s\n", *e);
    return 0;
  }
  if (!strcmp(op, "flood")) {
    static char block[65536];
    for (;;)
      if (write(atoi(a), block, sizeof block) < 0) return 1;
  }
  if (!strcmp(op, "fail")) {
    fprintf(stderr, "line one\n\x1b[31mline two\x1b[0m\n");
    return atoi(a);
  }
  fprintf(stderr, "no operation %s\n", op);
  return 2;
}
