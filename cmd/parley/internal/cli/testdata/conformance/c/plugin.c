// Calls every part of the SDK.
#include "parley.h"

static parley_json member(const char *name, parley_json value) {
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{");
  parley_string(&w, name);
  parley_raw(&w, ":");
  parley_value(&w, value);
  parley_raw(&w, "}");
  return parley_ok(w);
}

static parley_json quoted(const char *text, uint32_t len) {
  parley_writer w = PARLEY_EMPTY;
  parley_string_n(&w, text, len);
  return parley_written(w);
}

static parley_json nothing(void) {
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{}");
  return parley_ok(w);
}

static parley_json echo(const parley_request *r) { return member("value", parley_member(r->params, "value")); }

static parley_json text(const parley_request *r) {
  uint32_t len;
  char *s = parley_text_n(parley_member(r->params, "text"), &len);
  return member("text", quoted(s, len));
}

static parley_json sized(const parley_request *r) {
  static const struct {
    const char *name;
    int64_t least, most;
  } types[] = {
      {"i8", INT8_MIN, INT8_MAX}, {"u8", 0, UINT8_MAX}, {"i16", INT16_MIN, INT16_MAX}, {"u16", 0, UINT16_MAX},
      {"i32", INT32_MIN, INT32_MAX}, {"u32", 0, UINT32_MAX}, {"i64", INT64_MIN, INT64_MAX}, {"loose_i8", INT8_MIN, INT8_MAX},
  };
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{\"done\":true");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    parley_json v = parley_member(r->params, types[i].name);
    int64_t n;
    if (!v.len) continue;
    if (!parley_int64(v, &n) || n < types[i].least || n > types[i].most) return parley_refuse(r, v, "a smaller integer");
    parley_raw(&w, ",\"");
    parley_raw(&w, types[i].name);
    parley_raw(&w, "\":");
    parley_integer(&w, n);
  }
  parley_json u64 = parley_member(r->params, "u64"), map = parley_member(r->params, "map");
  uint64_t u;
  if (u64.len && !parley_uint64(u64, &u)) return parley_refuse(r, u64, "a uint64_t");
  for (parley_walk at = parley_begin(map); parley_next(&at);)
    if (!parley_uint64(at.value, &u) || u > UINT8_MAX) return parley_refuse(r, at.value, "a uint8_t");
  parley_json deep = parley_item(parley_member(parley_member(r->params, "loose_map"), "a/b"), 1);
  if (deep.len && (!parley_uint64(deep, &u) || u > UINT8_MAX)) return parley_refuse(r, deep, "a uint8_t");
  double f64 = parley_number(parley_member(r->params, "f64"), 0);
  if (f64 - f64 != 0) return parley_refuse(r, parley_member(r->params, "f64"), "a double");
  static const char *texts[] = {"text", "loose_text"};
  for (size_t i = 0; i < 2; i++) {
    parley_json v = parley_member(r->params, texts[i]);
    if (v.len && !parley_text(v)) return parley_refuse(r, v, "text without a zero byte");
  }
  parley_raw(&w, "}");
  return parley_ok(w);
}

static parley_json fail(const parley_request *r) {
  if (parley_number(parley_member(r->params, "code"), 0) == 10) return parley_fail(10, "declared \"failure\"");
  return parley_fail(42, "no such code");
}

static parley_json invalid(const parley_request *r) {
  (void)r;
  return parley_invalid("/text", "another text");
}

static parley_json warn(const parley_request *r) {
  (void)r;
  parley_warn("first \"warning\"");
  parley_warn("second");
  return nothing();
}

static parley_json about(const parley_request *r) {
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, r->tool);
  parley_raw(&w, " ");
  parley_raw(&w, parley_text(parley_member(r->json, "caller")));
  return member("text", quoted(w.at, w.len));
}

static parley_json outcome(parley_json reply) {
  if (parley_is(parley_member(reply, "ok"), "true")) return member("text", quoted("ok", 2));
  return member("text", parley_member(parley_member(reply, "error"), "code"));
}

static parley_json call(const parley_request *r) {
  parley_writer params = PARLEY_EMPTY;
  parley_json none = {NULL, 0};
  (void)r;
  parley_raw(&params, "{\"text\":\"a\"}");
  return outcome(parley_call_tool("text.hash", parley_written(params), none));
}

static parley_json fetch(const parley_request *r) {
  parley_writer request = PARLEY_EMPTY;
  (void)r;
  parley_raw(&request, "{\"url\":\"https://example.com\"}");
  return outcome(parley_http_request(parley_written(request)));
}

static parley_json secret(const parley_request *r) {
  (void)r;
  return outcome(parley_read_secret("KEY"));
}

static parley_json notes(const parley_request *r) {
  (void)r;
  parley_log(1, "a \"line\"");
  parley_progress(1, 2, "half");
  return nothing();
}

PARLEY_PLUGIN({"echo", echo}, {"text", text}, {"sized", sized}, {"fail", fail}, {"invalid", invalid}, {"warn", warn}, {"about", about},
              {"call", call}, {"fetch", fetch}, {"secret", secret}, {"notes", notes})
