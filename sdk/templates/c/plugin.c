// NAME: greets people.
#include "parley.h"

static parley_json greet(const parley_request *r) {
  parley_json given = parley_member(r->params, "name");
  const char *name = parley_text(given);
  if (!name) return parley_refuse(r, given, "a name without a zero byte");
  if (!strcmp(name, "nobody")) return parley_fail(10, "there is nobody to greet");
  parley_writer text = PARLEY_EMPTY, w = PARLEY_EMPTY;
  parley_raw(&text, "Hello, ");
  parley_raw(&text, name);
  parley_raw(&w, "{\"text\":");
  parley_string(&w, text.at);
  parley_raw(&w, "}");
  return parley_ok(w);
}

PARLEY_PLUGIN({"greet", greet})
