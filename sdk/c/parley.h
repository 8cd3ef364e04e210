// parley.h: plugins of kind parley/1 (abi.md) in C or C++, in this one header. It needs a libc for wasm32-wasi.
//
//   #include "parley.h"
//
//   static parley_json greet(const parley_request *r) {
//     parley_json given = parley_member(r->params, "name");
//     const char *name = parley_text(given);
//     if (!name) return parley_refuse(r, given, "a name without a zero byte");
//     parley_writer w = PARLEY_EMPTY;
//     parley_raw(&w, "{\"text\":");
//     parley_string(&w, name);
//     parley_raw(&w, "}");
//     return parley_ok(w);
//   }
//
//   PARLEY_PLUGIN({"greet", greet})
//
// An instance ends with its call, so nothing is freed. When memory is exhausted, the call ends as the ABI says.
#ifndef PARLEY_H
#define PARLEY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define PARLEY_C extern "C"
#else
#define PARLEY_C
#endif
#define PARLEY_EXPORT(name) PARLEY_C __attribute__((export_name(name)))
#define PARLEY_IMPORT(name) PARLEY_C __attribute__((import_module("parley"), import_name(name)))
// Defined as nothing, it makes the functions of this header visible to other languages, such as Zig (abi.md).
#ifndef PARLEY_FUNCTION
#define PARLEY_FUNCTION __attribute__((unused)) static
#endif

// A JSON value as it is written, such as a part of the request. A len of 0 means that there is no value.
typedef struct {
  const char *at;
  uint32_t len;
} parley_json;

// A request of the host. json is the whole of it, with granted, settings and so on.
typedef struct {
  const char *tool;
  parley_json params, json;
} parley_request;

// A function that runs a tool and returns a response: parley_ok, parley_fail or parley_invalid.
typedef parley_json (*parley_function)(const parley_request *);

typedef struct {
  const char *name;
  parley_function run;
} parley_tool;

// Text that grows, at first PARLEY_EMPTY.
typedef struct {
  char *at;
  uint32_t len, size;
} parley_writer;
#define PARLEY_EMPTY {NULL, 0, 0}

PARLEY_IMPORT("call_tool") uint64_t parley_import_call_tool(const char *ptr, uint32_t len);
PARLEY_IMPORT("http_request") uint64_t parley_import_http_request(const char *ptr, uint32_t len);
PARLEY_IMPORT("read_secret") uint64_t parley_import_read_secret(const char *ptr, uint32_t len);
PARLEY_IMPORT("log") void parley_import_log(int32_t level, const char *ptr, uint32_t len);
PARLEY_IMPORT("progress") void parley_import_progress(double done, double total, const char *ptr, uint32_t len);

// Writing JSON

// parley_bytes adds bytes as they are.
PARLEY_FUNCTION void parley_bytes(parley_writer *w, const char *at, uint32_t len) {
  if (len > UINT32_MAX / 4 || w->len > UINT32_MAX / 4) __builtin_trap();
  if (w->len + len + 1 > w->size) {
    w->size = (w->len + len + 1) * 2;
    w->at = (char *)realloc(w->at, w->size);
    if (!w->at) __builtin_trap();
  }
  if (len) memcpy(w->at + w->len, at, len);
  w->len += len;
  w->at[w->len] = 0;
}

// parley_raw adds text as it is, such as the brackets and keys of JSON.
PARLEY_FUNCTION void parley_raw(parley_writer *w, const char *text) { parley_bytes(w, text, (uint32_t)strlen(text)); }

// parley_value adds a JSON value.
PARLEY_FUNCTION void parley_value(parley_writer *w, parley_json v) { parley_bytes(w, v.at, v.len); }

// parley_string_n adds len bytes of UTF-8 as a JSON string.
PARLEY_FUNCTION void parley_string_n(parley_writer *w, const char *text, uint32_t len) {
  static const char hex[] = "0123456789abcdef";
  parley_bytes(w, "\"", 1);
  for (uint32_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    char escape[6] = {'\\', (char)c, '0', '0', hex[c >> 4 & 15], hex[c & 15]};
    if (c == '"' || c == '\\') {
      parley_bytes(w, escape, 2);
    } else if (c < ' ') {
      escape[1] = 'u';
      parley_bytes(w, escape, 6);
    } else {
      parley_bytes(w, text + i, 1);
    }
  }
  parley_bytes(w, "\"", 1);
}

// parley_string adds a text in UTF-8 as a JSON string.
PARLEY_FUNCTION void parley_string(parley_writer *w, const char *text) {
  parley_string_n(w, text, (uint32_t)strlen(text));
}

// parley_integer adds a number.
PARLEY_FUNCTION void parley_integer(parley_writer *w, int64_t n) {
  char digits[20], *end = digits + sizeof digits, *at = end;
  uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
  do *--at = (char)('0' + rest % 10);
  while (rest /= 10);
  if (n < 0) parley_bytes(w, "-", 1);
  parley_bytes(w, at, (uint32_t)(end - at));
}

PARLEY_FUNCTION parley_json parley_written(parley_writer w) {
  parley_json v = {w.at, w.len};
  return v;
}

// Reading JSON, which is valid because it comes from the host

PARLEY_FUNCTION const char *parley_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
  return at;
}

// parley_skip returns the end of the value that begins at at.
PARLEY_FUNCTION const char *parley_skip(const char *at, const char *end) {
  uint32_t depth = 0;
  for (; at < end; at++) {
    if (*at == '"') {
      for (at++; at < end && *at != '"'; at++)
        if (*at == '\\') at++;
    } else if (*at == '{' || *at == '[') {
      depth++;
    } else if (*at == '}' || *at == ']') {
      if (!depth) return at;
      depth--;
    } else if (*at != ',' && *at != ':' && *at > ' ') { // a number, true, false or null
      while (at + 1 < end && !strchr(",:]} \t\n\r", at[1])) at++;
    } else {
      continue; // between the values of a list
    }
    if (!depth) return at + 1;
  }
  return end;
}

PARLEY_FUNCTION uint32_t parley_hex(const char *at) {
  uint32_t n = 0;
  for (int i = 0; i < 4; i++) {
    char c = at[i];
    n = n << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return n;
}

// parley_text_n returns a JSON string decoded, with a zero byte after it, and its length. NULL: v is not a string.
PARLEY_FUNCTION char *parley_text_n(parley_json v, uint32_t *len) {
  if (!v.len || *v.at != '"') return NULL;
  char *text = (char *)malloc(v.len), *out = text;
  if (!text) __builtin_trap();
  for (const char *at = v.at + 1, *end = v.at + v.len - 1; at < end; at++) {
    if (*at != '\\') {
      *out++ = *at;
      continue;
    }
    static const char names[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const char *named = strchr(names, *++at);
    if (*at != 'u') {
      *out++ = named ? meant[named - names] : *at;
      continue;
    }
    uint32_t c = parley_hex(at + 1);
    at += 4;
    if (c >> 10 == 0xd800 >> 10 && at[1] == '\\' && at[2] == 'u') { // the other half of a pair
      c = 0x10000 + ((c & 0x3ff) << 10) + (parley_hex(at + 3) & 0x3ff);
      at += 6;
    } else if (c >> 11 == 0xd800 >> 11) {
      c = 0xfffd;
    }
    if (c < 0x80) {
      *out++ = (char)c;
    } else {
      int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
      *out++ = (char)((more == 1 ? 0xc0 : more == 2 ? 0xe0 : 0xf0) | c >> 6 * more);
      while (more--) *out++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    }
  }
  *out = 0;
  *len = (uint32_t)(out - text);
  return text;
}

// parley_text returns a JSON string decoded, NULL if v is not a string, or has a zero byte, where C would end it: such a
// text is refused with parley_refuse, or read with parley_text_n.
PARLEY_FUNCTION char *parley_text(parley_json v) {
  uint32_t len;
  char *text = parley_text_n(v, &len);
  return text && strlen(text) == len ? text : NULL;
}

// A walk through the elements of a list or the members of an object, whose keys are strings as they are written.
typedef struct {
  const char *at, *end;
  parley_json key, value;
} parley_walk;

PARLEY_FUNCTION parley_walk parley_begin(parley_json of) {
  parley_walk w = {of.at, of.at, {NULL, 0}, {NULL, 0}};
  if (of.len && (*of.at == '{' || *of.at == '[')) w.end = of.at + of.len - 1;
  if (w.end > w.at && *of.at == '{') w.key = of;
  return w;
}

// parley_next goes to the next element or member. It returns 0 after the last one.
PARLEY_FUNCTION int parley_next(parley_walk *w) {
  if (w->at >= w->end) return 0;
  const char *at = parley_space(w->at + 1, w->end); // after the bracket or the comma
  if (at >= w->end) return 0;
  if (w->key.at) {
    w->key.at = at;
    w->key.len = (uint32_t)(parley_skip(at, w->end) - at);
    at = parley_space(parley_space(at + w->key.len, w->end) + 1, w->end);
  }
  w->value.at = at;
  w->value.len = (uint32_t)(parley_skip(at, w->end) - at);
  w->at = parley_space(at + w->value.len, w->end);
  return 1;
}

// parley_item returns an element of a list, counted from 0. Its len is 0 if there is none.
PARLEY_FUNCTION parley_json parley_item(parley_json list, uint32_t index) {
  parley_json none = {NULL, 0};
  parley_walk w = parley_begin(list);
  while (!w.key.at && parley_next(&w))
    if (!index--) return w.value;
  return none;
}

// parley_member returns a member of an object. Its len is 0 if there is none.
PARLEY_FUNCTION parley_json parley_member(parley_json object, const char *name) {
  parley_json none = {NULL, 0};
  parley_walk w = parley_begin(object);
  while (w.key.at && parley_next(&w)) {
    uint32_t n = (uint32_t)strlen(name), len;
    int same = w.key.len == n + 2 && !memcmp(w.key.at + 1, name, n);
    if (!same && memchr(w.key.at, '\\', w.key.len)) {
      const char *text = parley_text_n(w.key, &len);
      same = text && len == n && !memcmp(text, name, n);
    }
    if (same) return w.value;
  }
  return none;
}

// parley_is reports whether a value is the word true, false or null, or a number as it is written.
PARLEY_FUNCTION int parley_is(parley_json v, const char *word) {
  return v.len == strlen(word) && !memcmp(v.at, word, v.len);
}

// parley_number returns a number, or otherwise if v is not one. An integer beyond 2^53 is rounded.
PARLEY_FUNCTION double parley_number(parley_json v, double otherwise) {
  if (!v.len || !strchr("-0123456789", *v.at)) return otherwise;
  parley_writer digits = PARLEY_EMPTY;
  parley_value(&digits, v);
  return strtod(digits.at, NULL);
}

// parley_uint64 reads an integer. It returns 0, and leaves n as it is, if v is not one that n holds.
PARLEY_FUNCTION int parley_uint64(parley_json v, uint64_t *n) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < v.len; i++) {
    uint32_t digit = (uint32_t)(v.at[i] - '0');
    if (digit > 9 || sum > (UINT64_MAX - digit) / 10) return 0;
    sum = sum * 10 + digit;
  }
  if (v.len) *n = sum;
  return v.len > 0;
}

// parley_int64 reads an integer. It returns 0, and leaves n as it is, if v is not one that n holds.
PARLEY_FUNCTION int parley_int64(parley_json v, int64_t *n) {
  uint32_t minus = v.len && *v.at == '-';
  parley_json digits = {v.at + minus, v.len - minus};
  uint64_t sum;
  if (!parley_uint64(digits, &sum) || sum > (uint64_t)INT64_MAX + minus) return 0;
  *n = (int64_t)(minus ? 0 - sum : sum);
  return 1;
}

// Responses

PARLEY_FUNCTION parley_writer *parley_warnings(void) {
  static parley_writer warnings;
  return &warnings;
}

// parley_warn adds a warning to the response.
PARLEY_FUNCTION void parley_warn(const char *text) {
  parley_writer *w = parley_warnings();
  parley_raw(w, w->len ? "," : ",\"warnings\":[");
  parley_string(w, text);
}

PARLEY_FUNCTION parley_json parley_respond(parley_writer *w) {
  parley_writer *warnings = parley_warnings();
  if (warnings->len) {
    parley_bytes(w, warnings->at, warnings->len);
    parley_raw(w, "]");
  }
  parley_raw(w, "}");
  return parley_written(*w);
}

// parley_ok returns the response with a result, which is JSON.
PARLEY_FUNCTION parley_json parley_ok(parley_writer result) {
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{\"ok\":true,\"result\":");
  parley_value(&w, parley_written(result));
  return parley_respond(&w);
}

// parley_fail returns the response that ends the call in an exit code that the manifest declares, or in 1.
PARLEY_FUNCTION parley_json parley_fail(int exit_code, const char *message) {
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{\"ok\":false,\"exit\":");
  parley_integer(&w, exit_code);
  parley_raw(&w, ",\"message\":");
  parley_string(&w, message);
  return parley_respond(&w);
}

// parley_invalid returns the response that refuses a parameter, such as "/name".
PARLEY_FUNCTION parley_json parley_invalid(const char *pointer, const char *expected) {
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{\"ok\":false,\"invalid\":[{\"pointer\":");
  parley_string(&w, pointer);
  parley_raw(&w, ",\"expected\":");
  parley_string(&w, expected);
  parley_raw(&w, "}]");
  return parley_respond(&w);
}

// parley_point adds the JSON pointer to the value at at, which is in v or is v itself.
PARLEY_FUNCTION void parley_point(parley_writer *w, parley_json v, const char *at) {
  parley_walk walk = parley_begin(v);
  for (int64_t i = 0; at != v.at && parley_next(&walk); i++) {
    if (at < walk.value.at || at >= walk.value.at + walk.value.len) continue;
    parley_raw(w, "/");
    if (!walk.key.at) {
      parley_integer(w, i);
    } else {
      uint32_t len;
      char *name = parley_text_n(walk.key, &len);
      for (uint32_t j = 0; j < len; j++)
        parley_bytes(w, name[j] == '~' ? "~0" : name[j] == '/' ? "~1" : name + j, name[j] == '~' || name[j] == '/' ? 2 : 1);
    }
    parley_point(w, walk.value, at);
    return;
  }
}

// parley_refuse returns the response that refuses a value of the parameters, which is named and, if it is long, cut.
PARLEY_FUNCTION parley_json parley_refuse(const parley_request *r, parley_json v, const char *expected) {
  parley_writer w = PARLEY_EMPTY, pointer = PARLEY_EMPTY;
  uint32_t shown = v.len < 100 ? v.len : 100;
  while (shown < v.len && shown && (v.at[shown] & 0xc0) == 0x80) shown--; // not within a character
  if (v.len) parley_point(&pointer, r->params, v.at);
  parley_raw(&w, "{\"ok\":false,\"invalid\":[{\"pointer\":");
  parley_string_n(&w, pointer.at, pointer.len);
  parley_raw(&w, ",\"expected\":");
  parley_string(&w, expected);
  parley_raw(&w, ",\"provided\":");
  parley_string_n(&w, v.at, shown);
  parley_raw(&w, "}]");
  return parley_respond(&w);
}

// What the host does for a plugin. A reply is {"ok":true,"result":..} or {"ok":false,"error":{"code":..,"message":..}}.

PARLEY_FUNCTION parley_json parley_reply(uint64_t packed) {
  parley_json reply = {(const char *)(uintptr_t)(packed >> 32), (uint32_t)packed};
  return reply;
}

// parley_call_tool calls another tool and returns the reply. options can be empty.
PARLEY_FUNCTION parley_json parley_call_tool(const char *tool, parley_json params, parley_json options) {
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{\"tool\":");
  parley_string(&w, tool);
  if (params.len) parley_raw(&w, ",\"params\":");
  parley_value(&w, params);
  if (options.len) parley_raw(&w, ",\"options\":");
  parley_value(&w, options);
  parley_raw(&w, "}");
  return parley_reply(parley_import_call_tool(w.at, w.len));
}

// parley_http_request makes an HTTP request, which is {"url":..,"method":..,"headers":..,"body":..}.
PARLEY_FUNCTION parley_json parley_http_request(parley_json request) {
  return parley_reply(parley_import_http_request(request.at, request.len));
}

// parley_read_secret returns the reply with a readable secret.
PARLEY_FUNCTION parley_json parley_read_secret(const char *name) {
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{\"name\":");
  parley_string(&w, name);
  parley_raw(&w, "}");
  return parley_reply(parley_import_read_secret(w.at, w.len));
}

// parley_log writes a line for the operator. level is 0 debug, 1 info, 2 warn or 3 error.
PARLEY_FUNCTION void parley_log(int level, const char *text) {
  parley_import_log(level, text, (uint32_t)strlen(text));
}

// parley_progress says how far the call is. A total of 0 means that it is not known.
PARLEY_FUNCTION void parley_progress(double done, double total, const char *text) {
  parley_import_progress(done, total, text, (uint32_t)strlen(text));
}

PARLEY_FUNCTION uint64_t parley_serve(const parley_tool *tools, size_t count, parley_json json) {
  parley_request r = {parley_text(parley_member(json, "tool")), parley_member(json, "params"), json};
  parley_json response = {NULL, 0};
  parley_warnings()->len = 0;
  for (size_t i = 0; i < count && r.tool; i++)
    if (!strcmp(tools[i].name, r.tool)) response = tools[i].run(&r);
  if (!response.at) response = parley_fail(1, "the plugin has no such tool");
  return (uint64_t)(uintptr_t)response.at << 32 | response.len;
}

// PARLEY_PLUGIN defines the exports of a plugin with these tools. It stands once, in one file.
#define PARLEY_PLUGIN(...)                                                                                 \
  PARLEY_EXPORT("parley_alloc") void *parley_export_alloc(uint32_t len) { return malloc(len ? len : 1); }  \
  PARLEY_EXPORT("parley_call") uint64_t parley_export_call(const char *ptr, uint32_t len) {                \
    static const parley_tool tools[] = {__VA_ARGS__};                                                      \
    parley_json json = {ptr, len};                                                                         \
    return parley_serve(tools, sizeof tools / sizeof *tools, json);                                        \
  }

#endif
