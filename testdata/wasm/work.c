// work: a parley/1 guest whose calls take as long as a test wants, before and after they reach the world.
#include <unistd.h>

#include "../../sdk/c/parley.h"

static void rest_for(const parley_request *r, const char *name) {
  usleep((useconds_t)(1000 * parley_number(parley_member(r->params, name), 0)));
}

static parley_json nothing(const parley_request *r) {
  (void)r;
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{}");
  return parley_ok(w);
}

static parley_json rest(const parley_request *r) {
  rest_for(r, "ms");
  return nothing(r);
}

// act sends a request, as often as it is told, and rests after each.
static parley_json act(const parley_request *r) {
  parley_writer request = PARLEY_EMPTY, result = PARLEY_EMPTY;
  parley_raw(&request, "{\"method\":");
  parley_value(&request, parley_member(r->params, "method"));
  parley_raw(&request, ",\"url\":");
  parley_value(&request, parley_member(r->params, "url"));
  parley_raw(&request, "}");
  rest_for(r, "before");
  for (int i = (int)parley_number(parley_member(r->params, "times"), 1); i > 0; i--) {
    parley_json reply = parley_http_request(parley_written(request));
    if (!parley_is(parley_member(reply, "ok"), "true")) return parley_fail(10, "the request was not answered");
    rest_for(r, "ms");
  }
  parley_raw(&result, "{}");
  return parley_ok(result);
}

// large returns a text of a size.
static parley_json large(const parley_request *r) {
  uint32_t size = (uint32_t)parley_number(parley_member(r->params, "bytes"), 0);
  char *text = malloc(size + 1);
  if (!text) return parley_fail(10, "no memory");
  memset(text, 'x', size);
  text[size] = 0;
  parley_writer w = PARLEY_EMPTY;
  parley_raw(&w, "{\"text\":");
  parley_string_n(&w, text, size);
  parley_raw(&w, "}");
  return parley_ok(w);
}

PARLEY_PLUGIN({"nothing", nothing}, {"rest", rest}, {"act", act}, {"large", large})
