// Shared code of the programs in this folder. Each is a WASI command that uses the folder granted as "/" through calls of
// WASI preview 1. It exits with 1 and a line on stderr if a call differs from other hosts. The programs have the names
// of the tests of the official WASI suite that check the same behaviour.
#include <stdint.h>
#include <string.h>
#include <wasi/api.h>

enum { ROOT = 3, FOLLOW = __WASI_LOOKUPFLAGS_SYMLINK_FOLLOW };
#define RW (__WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_WRITE)

static void fail(int line, const char *what, int errno_) {
  char text[200], *at = text;
  for (int scale = 1000; scale; scale /= 10) *at++ = '0' + line / scale % 10;
  *at++ = ':', *at++ = ' ';
  for (int i = 0; what[i] && i < 150; i++) *at++ = what[i];
  for (const char *s = ": errno "; *s; s++) *at++ = *s;
  *at++ = '0' + errno_ / 10, *at++ = '0' + errno_ % 10, *at++ = '\n';
  __wasi_ciovec_t v = {(uint8_t *)text, (__wasi_size_t)(at - text)};
  __wasi_size_t n;
  (void)!__wasi_fd_write(2, &v, 1, &n);
  __wasi_proc_exit(1);
}

#define CHECK(condition) do { if (!(condition)) fail(__LINE__, #condition, 0); } while (0)
#define OK(call) do { int e_ = (call); if (e_) fail(__LINE__, #call, e_); } while (0)
#define FAILS(call, want) do { int e_ = (call); if (e_ != __WASI_ERRNO_##want) fail(__LINE__, #call, e_); } while (0)

static inline int open_at(int dir, const char *path, int lookup, int oflags, uint64_t rights, int fdflags, __wasi_fd_t *fd) {
  return __wasi_path_open(dir, lookup, path, oflags, rights, 0, fdflags, fd);
}

static inline int close_fd(__wasi_fd_t fd) { return __wasi_fd_close(fd); }

// scratch creates a folder, opens it and returns its descriptor.
static inline __wasi_fd_t scratch(const char *name) {
  __wasi_fd_t fd;
  OK(__wasi_path_create_directory(ROOT, name));
  OK(open_at(ROOT, name, 0, __WASI_OFLAGS_DIRECTORY, 0, 0, &fd));
  return fd;
}

static inline void create_file(int dir, const char *name) {
  __wasi_fd_t fd;
  OK(open_at(dir, name, 0, __WASI_OFLAGS_CREAT | __WASI_OFLAGS_EXCL, RW, 0, &fd));
  OK(close_fd(fd));
}

static inline __wasi_size_t put(__wasi_fd_t fd, const char *text) {
  __wasi_ciovec_t v = {(uint8_t *)text, strlen(text)};
  __wasi_size_t n = 0;
  OK(__wasi_fd_write(fd, &v, 1, &n));
  return n;
}

static inline __wasi_size_t put_at(__wasi_fd_t fd, const char *text, uint64_t at) {
  __wasi_ciovec_t v = {(uint8_t *)text, strlen(text)};
  __wasi_size_t n = 0;
  OK(__wasi_fd_pwrite(fd, &v, 1, at, &n));
  return n;
}

// holds reports whether text is the file's content.
static inline int holds(__wasi_fd_t fd, const char *text) {
  char buf[256];
  __wasi_iovec_t v = {(uint8_t *)buf, sizeof buf};
  __wasi_size_t n = 0;
  OK(__wasi_fd_pread(fd, &v, 1, 0, &n));
  return n == strlen(text) && !memcmp(buf, text, n);
}

static inline uint64_t offset_of(__wasi_fd_t fd) {
  uint64_t at = 0;
  OK(__wasi_fd_tell(fd, &at));
  return at;
}

static inline uint64_t seek(__wasi_fd_t fd, int64_t to, int whence) {
  uint64_t at = 0;
  OK(__wasi_fd_seek(fd, to, whence, &at));
  return at;
}

static inline __wasi_filestat_t stat_of(__wasi_fd_t fd) {
  __wasi_filestat_t st;
  OK(__wasi_fd_filestat_get(fd, &st));
  return st;
}

static inline int stat_at(int dir, const char *name, int lookup, __wasi_filestat_t *st) {
  return __wasi_path_filestat_get(dir, lookup, name, st);
}
