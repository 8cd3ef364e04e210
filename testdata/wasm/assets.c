// assets: a parley/1 guest that reads files which its plugin brings. It reads /lib/greeting before its first call.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(name)))

static char greeting[64];
static int calls; // of this instance

__attribute__((constructor)) static void initialize(void) {
  int fd = open("/lib/greeting", O_RDONLY);
  if (fd < 0 || read(fd, greeting, sizeof greeting - 1) < 0) strcpy(greeting, strerror(errno));
  if (fd >= 0) close(fd);
}

EXPORT("parley_alloc") void *parley_alloc(uint32_t len) { return malloc(len ? len : 1); }

static uint64_t result(const char *s) {
  char *out = malloc(strlen(s) + 64);
  int n = sprintf(out, "{\"ok\":true,\"result\":{\"text\":\"%s\"}}", s);
  return (uint64_t)(uintptr_t)out << 32 | (uint32_t)n;
}

static uint64_t failed(void) { return result(strerror(errno)); }

// path copies the value of the parameter path, in which no character is escaped.
static void path(const char *request, uint32_t len, char *out, uint32_t room) {
  static const char key[] = "\"path\":\"";
  uint32_t n = 0;
  for (uint32_t i = 0; i + sizeof key <= len; i++)
    if (!memcmp(request + i, key, sizeof key - 1)) {
      for (i += sizeof key - 1; i < len && request[i] != '"' && n + 1 < room; i++) out[n++] = request[i];
      break;
    }
  out[n] = 0;
}

static int has(const char *request, uint32_t len, const char *part) {
  uint32_t n = strlen(part);
  for (uint32_t i = 0; i + n <= len; i++)
    if (!memcmp(request + i, part, n)) return 1;
  return 0;
}

EXPORT("parley_call") uint64_t parley_call(const char *request, uint32_t len) {
  char name[256], text[1024] = "";
  path(request, len, name, sizeof name);
  calls++;
  if (has(request, len, "\"tool\":\"greet\"")) return result(greeting);
  if (has(request, len, "\"tool\":\"count\"")) return result(calls == 1 ? "first" : "again");
  if (has(request, len, "\"tool\":\"write\"")) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return fd < 0 || write(fd, "x", 1) < 0 ? failed() : result("written");
  }
  if (has(request, len, "\"tool\":\"remove\"")) return unlink(name) < 0 ? failed() : result("removed");
  if (has(request, len, "\"tool\":\"list\"")) {
    DIR *dir = opendir(name);
    if (!dir) return failed();
    for (struct dirent *e; (e = readdir(dir)) && strlen(text) + strlen(e->d_name) + 2 < sizeof text;)
      if (e->d_name[0] != '.') strcat(strcat(text, e->d_name), " ");
    closedir(dir);
    return result(text);
  }
  int fd = open(name, O_RDONLY);
  if (fd < 0 || read(fd, text, sizeof text - 1) < 0) return failed();
  return result(text);
}
