// echo: a parley/1 guest that implements sdk/abi.md without an SDK, to test hosts.
// Its tools "echo", "ask" and "fail" behave well; each of the others misbehaves in one way.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("parley"), import_name(name)))

IMPORT("call_tool") uint64_t call_tool(const char *ptr, uint32_t len);
IMPORT("http_request") uint64_t http_request(const char *ptr, uint32_t len);
IMPORT("read_secret") uint64_t read_secret(const char *ptr, uint32_t len);
IMPORT("log") void host_log(int32_t level, const char *ptr, uint32_t len);
IMPORT("progress") void progress(double done, double total, const char *ptr, uint32_t len);

static int calls;      // more than 1 in a call of tool "count" means that the instance is not fresh
static int alloc_zero; // set by tool "ask-no-room": there is no memory for the reply of the import

EXPORT("parley_alloc") void *parley_alloc(uint32_t len) { return alloc_zero ? 0 : malloc(len ? len : 1); }

static uint64_t pack(const void *ptr, uint64_t len) { return (uint64_t)(uintptr_t)ptr << 32 | len; }

static uint64_t text(const char *s) { return pack(s, strlen(s)); }

// joined returns head, then n bytes of body, then tail, as one response.
static uint64_t joined(const char *head, const char *body, uint32_t n, const char *tail) {
  uint32_t h = strlen(head), t = strlen(tail);
  char *out = malloc(h + n + t);
  memcpy(out, head, h);
  memcpy(out + h, body, n);
  memcpy(out + h + n, tail, t);
  return pack(out, h + n + t);
}

// value finds the JSON value of a member of an object and returns its length, or 0. It counts brackets and
// skips strings, which is enough for valid JSON. Only the object's own members count, not those of inner ones.
static uint32_t value(const char *json, uint32_t len, const char *key, const char **at) {
  uint32_t k = strlen(key), start = 0;
  int depth = 0;
  for (uint32_t i = 0; i < len; i++) {
    char c = json[i];
    if (c == '"') {
      uint32_t open = i++;
      for (; i < len && json[i] != '"'; i++)
        if (json[i] == '\\') i++;
      if (depth == 1 && !start && i - open - 1 == k && !memcmp(json + open + 1, key, k)) {
        uint32_t p = i + 1;
        while (p < len && json[p] == ' ') p++;
        if (p < len && json[p] == ':') start = i = p;
      }
    } else if (start && depth == 1 && (c == ',' || c == '}')) {
      do start++;
      while (json[start] == ' ');
      *at = json + start;
      return i - start;
    } else if (c == '{' || c == '[') depth++;
    else if (c == '}' || c == ']') depth--;
  }
  return 0;
}

static int is(const char *s, uint32_t n, const char *want) { return n == strlen(want) + 2 && !memcmp(s + 1, want, n - 2); }

// asked returns the reply of an import as the result of the call.
static uint64_t asked(uint64_t answer) {
  return joined("{\"ok\":true,\"result\":", (const char *)(uintptr_t)(answer >> 32), (uint32_t)answer, "}");
}

__attribute__((noinline)) static int deep(volatile int n) { return n == -1 ? 0 : deep(n + 1) + n; }

EXPORT("parley_call") uint64_t parley_call(const char *request, uint32_t len) {
  calls++;
  const char *tool, *params, *v;
  uint32_t t = value(request, len, "tool", &tool);
  uint32_t p = value(request, len, "params", &params);
  if (!t) return text("{\"ok\":false,\"exit\":1,\"message\":\"request without tool\"}");

  // Correct behaviour.
  if (is(tool, t, "echo")) return joined("{\"ok\":true,\"result\":", params, p, "}");
  if (is(tool, t, "request")) return joined("{\"ok\":true,\"result\":", request, len, "}");
  if (is(tool, t, "warn")) return text("{\"ok\":true,\"result\":{},\"warnings\":[\"first\",\"second\"]}");
  if (is(tool, t, "count")) return text(calls == 1 ? "{\"ok\":true,\"result\":{\"calls\":1}}" : "{\"ok\":true,\"result\":{\"calls\":2}}");
  if (is(tool, t, "fail")) return text("{\"ok\":false,\"exit\":10,\"message\":\"declared failure\",\"details\":{\"why\":\"asked to\"}}");
  if (is(tool, t, "fail-undeclared")) return text("{\"ok\":false,\"exit\":42,\"message\":\"undeclared failure\"}");
  if (is(tool, t, "invalid"))
    return text("{\"ok\":false,\"invalid\":[{\"pointer\":\"/value\",\"expected\":\"something better\",\"provided\":\"this\",\"suggestion\":\"try again\"}]}");
  if (is(tool, t, "call-tool")) return asked(call_tool(params, p));
  if (is(tool, t, "http-request")) return asked(http_request(params, p));
  if (is(tool, t, "read-secret")) return asked(read_secret(params, p));
  if (is(tool, t, "log")) {
    host_log(0, "debug line", 10);
    host_log(1, "info line", 9);
    host_log(2, "warn line", 9);
    host_log(3, "\x1b[31merror\nline", 15);
    return text("{\"ok\":true,\"result\":{}}");
  }
  if (is(tool, t, "progress")) {
    progress(1, 2, "half", 4);
    progress(2, 2, "done", 4);
    return text("{\"ok\":true,\"result\":{}}");
  }
  if (is(tool, t, "print")) {
    write(1, "to stdout\n", 10);
    write(2, "to stderr\n", 10);
    return text("{\"ok\":true,\"result\":{}}");
  }

  // Calls that never end.
  if (is(tool, t, "spin"))
    for (volatile uint32_t i = 0;; i++) {}
  if (is(tool, t, "recurse")) return deep(0);
  if (is(tool, t, "sleep")) {
    sleep(3600);
    return text("{\"ok\":true,\"result\":{}}");
  }
  if (is(tool, t, "read-stdin")) {
    char c;
    return read(0, &c, 1) == 0 ? text("{\"ok\":true,\"result\":{}}") : text("{\"ok\":false,\"exit\":1,\"message\":\"stdin is not empty\"}");
  }

  // Calls that crash.
  if (is(tool, t, "trap")) __builtin_trap();
  if (is(tool, t, "exit")) _Exit(value(params, p, "code", &v) ? atoi(v) : 3);

  // Excessive use of resources.
  if (is(tool, t, "grow")) {
    while (__builtin_wasm_memory_grow(0, 16) != (size_t)-1) {}
    return text("{\"ok\":false,\"exit\":11,\"message\":\"no more memory\"}");
  }
  if (is(tool, t, "flood")) { // 64 MiB on stdout
    static char block[65536];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 1024; i++)
      if (write(1, block, sizeof block) < 0) break;
    return text("{\"ok\":true,\"result\":{}}");
  }
  if (is(tool, t, "flood-log")) {
    static char block[4096];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 16384; i++) host_log(1, block, sizeof block);
    return text("{\"ok\":true,\"result\":{}}");
  }
  if (is(tool, t, "flood-result")) { // a valid response of 16 MiB
    uint32_t n = 16 << 20;
    char *body = malloc(n);
    if (!body) return text("{\"ok\":false,\"exit\":11,\"message\":\"no more memory\"}");
    memset(body, 'x', n);
    return joined("{\"ok\":true,\"result\":\"", body, n, "\"}");
  }

  // Invalid responses.
  if (is(tool, t, "outside")) return pack((void *)0xfffffff0, 64);
  if (is(tool, t, "outside-length")) return pack(request, 0xffffffff);
  if (is(tool, t, "empty")) return 0;
  if (is(tool, t, "bad-json")) return text("{\"ok\":true,\"result\":");
  if (is(tool, t, "trailing")) return text("{\"ok\":true,\"result\":{}} {}");
  if (is(tool, t, "bad-utf8")) return text("{\"ok\":true,\"result\":{\"a\":\"\xff\"}}");
  if (is(tool, t, "not-a-response")) return text("[1,2,3]");
  if (is(tool, t, "no-ok")) return text("{\"result\":{}}");
  if (is(tool, t, "bad-result")) return text("{\"ok\":true,\"result\":{\"value\":\"not a number\"}}");
  if (is(tool, t, "ansi")) return text("{\"ok\":false,\"exit\":10,\"message\":\"\\u001b[31mred\\u001b[0m \\u202etfel\"}");

  // Invalid requests to the host.
  if (is(tool, t, "ask-outside")) return asked(call_tool((const char *)0xfffffff0, 64));
  if (is(tool, t, "ask-bad-json")) return asked(call_tool("{", 1));
  if (is(tool, t, "ask-no-room")) {
    alloc_zero = 1;
    return asked(call_tool(params, p));
  }
  return joined("{\"ok\":false,\"exit\":1,\"message\":\"no tool \",\"details\":", tool, t, "}");
}
