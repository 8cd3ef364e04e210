// extism: a plugin that lists tools as Extism plugins for MCP do, in the second form, without a development kit. Its
// first tools behave well; each of the others misbehaves in one way.
#include <stdint.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define HOST(name) __attribute__((import_module("extism:host/env"), import_name(name)))

typedef uint64_t handle; // the address of a block in the host's memory

HOST("alloc") handle block(uint64_t n);
HOST("free") void release(handle h);
HOST("length") uint64_t length(handle h);
HOST("load_u8") uint32_t load_u8(uint64_t at);
HOST("load_u64") uint64_t load_u64(uint64_t at);
HOST("store_u8") void store_u8(uint64_t at, uint32_t value);
HOST("store_u64") void store_u64(uint64_t at, uint64_t value);
HOST("input_length") uint64_t input_length(void);
HOST("input_load_u8") uint32_t input_load_u8(uint64_t at);
HOST("input_load_u64") uint64_t input_load_u64(uint64_t at);
HOST("output_set") void output_set(handle h, uint64_t n);
HOST("error_set") void error_set(handle h);
HOST("config_get") handle config_get(handle key);
HOST("var_get") handle var_get(handle key);
HOST("var_set") void var_set(handle key, handle value);
HOST("http_request") handle http_request(handle request, handle body);
HOST("http_status_code") uint32_t http_status_code(void);
HOST("http_headers") handle http_headers(void);
HOST("log_warn") void log_warn(handle message);
__attribute__((import_module("extism:host/user"), import_name("kv_read"))) uint64_t kv_read(uint64_t key);

static char input[1 << 16], scratch[1 << 16];

static handle put(const char *text) {
  uint64_t n = strlen(text), i = 0;
  handle h = block(n);
  for (; i + 8 <= n; i += 8) {
    uint64_t part;
    memcpy(&part, text + i, 8);
    store_u64(h + i, part);
  }
  for (; i < n; i++) store_u8(h + i, (unsigned char)text[i]);
  return h;
}

// get copies a block to scratch, as a text.
static const char *get(handle h) {
  uint64_t n = length(h);
  if (n >= sizeof scratch) n = sizeof scratch - 1;
  for (uint64_t i = 0; i < n; i++) scratch[i] = (char)load_u8(h + i);
  scratch[n] = 0;
  return scratch;
}

static int32_t reply(const char *json) {
  output_set(put(json), strlen(json));
  return 0;
}

// say replies with a text, which has no character that JSON escapes.
static int32_t say(const char *text) {
  static char json[sizeof scratch + 64];
  strcpy(json, "{\"content\":[{\"type\":\"text\",\"text\":\"");
  strcat(json, text);
  strcat(json, "\"}]}");
  return reply(json);
}

EXPORT("list_tools") int32_t list_tools(void) {
  static const char *const names[] = {"text", "structured", "blocks", "refuse", "fail", "config", "variables", "http", "log",
                                      "user", "stale", "beyond", "null", "huge", "many", "no-block", "long", "no-json", "input", "spin",
                                      "requests"};
  static char list[8192];
  strcpy(list, "{\"tools\":[");
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    strcat(list, i ? ",{\"name\":\"" : "{\"name\":\"");
    strcat(list, names[i]);
    strcat(list, "\",\"description\":\"Do what the test says of it\",\"inputSchema\":{\"type\":\"object\"}}");
  }
  strcat(list, "]}");
  return reply(list);
}

EXPORT("call_tool") int32_t call_tool(void) {
  uint64_t n = input_length();
  if (n >= sizeof input) n = sizeof input - 1;
  for (uint64_t i = 0; i < n; i++) input[i] = (char)input_load_u8(i);
  input[n] = 0;
#define IS(tool) strstr(input, "\"name\":\"" tool "\"")
  if (IS("text")) return say("first\"},{\"type\":\"text\",\"text\":\"second");
  if (IS("structured")) return reply("{\"content\":[{\"type\":\"text\",\"text\":\"1\"}],\"structuredContent\":{\"n\":1}}");
  if (IS("blocks"))
    return reply("{\"content\":[{\"type\":\"image\",\"data\":\"aGk=\",\"mimeType\":\"image/png\"},"
                 "{\"type\":\"resource\",\"resource\":{\"uri\":\"a:b\",\"text\":\"T\",\"mimeType\":\"text/plain\"}},"
                 "{\"type\":\"resource_link\",\"uri\":\"c:d\",\"name\":\"N\"}]}");
  if (IS("refuse")) return reply("{\"content\":[{\"type\":\"text\",\"text\":\"I will not\"}],\"isError\":true}");
  if (IS("fail")) {
    error_set(put("it failed"));
    return 1;
  }
  if (IS("config")) {
    handle word = config_get(put("word"));
    return say(word ? get(word) : "no word");
  }
  if (IS("variables")) {
    handle key = put("key");
    if (var_get(key)) return say("it was there before");
    var_set(key, put("kept"));
    strcpy(input, get(var_get(key)));
    var_set(key, 0);
    return say(var_get(key) ? "it is still there" : input);
  }
  if (IS("http")) { // {"method":"..","url":".."}
    char *request = strstr(input, "{\"method\"");
    strchr(request, '}')[1] = 0;
    handle body = http_request(put(request), strstr(input, "POST") ? put("posted") : 0);
    strcpy(input, get(body));
    if (http_status_code() != 201 || !strstr(get(http_headers()), "\"x-test\":\"yes\"")) return say("no status or header");
    return say(input);
  }
  if (IS("requests"))
    for (;;) http_request(put("{\"method\":\"GET\",\"url\":\"http://a.test/\"}"), 0);
  if (IS("log")) {
    log_warn(put("a warning"));
    return say("logged");
  }
  if (IS("user")) return kv_read(put("key")) ? say("read") : say("nothing");
  handle h = put("12345678");
  if (IS("stale")) {
    release(h);
    return (int32_t)load_u8(h);
  }
  if (IS("beyond")) return (int32_t)load_u64(h + 1);
  if (IS("null")) store_u8(0, 1);
  if (IS("huge")) block(UINT64_C(1) << 40);
  if (IS("many"))
    for (;;) block(1 << 20);
  if (IS("no-block")) error_set(h + 1);
  if (IS("long")) output_set(block(2 << 20), 2 << 20);
  if (IS("no-json")) output_set(h, 3), output_set(put("no"), 2);
  if (IS("input")) input_load_u64(n - 7);
  if (IS("spin"))
    for (;;) store_u8(h, 0);
  return 0;
}
