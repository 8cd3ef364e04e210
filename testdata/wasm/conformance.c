// conformance: a parley/1 guest with the tools that the conformance suite of MCP calls, as far as the ABI supports their results.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("parley"), import_name(name)))

IMPORT("log") void host_log(int32_t level, const char *ptr, uint32_t len);
IMPORT("progress") void progress(double done, double total, const char *ptr, uint32_t len);

#define PNG "\"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC\"" // one red pixel
#define WAV "\"UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==\"" // one sample of silence
#define TEXT "\"QW4gZW1iZWRkZWQgdGV4dA==\""

// The memory of a request is zeroed and ends with a zero, so that it is a string.
EXPORT("parley_alloc") void *parley_alloc(uint32_t len) { return calloc(len + 1, 1); }

static uint64_t answer(const char *json) { return (uint64_t)(uintptr_t)json << 32 | strlen(json); }

static void say(const char *line) { host_log(1, line, strlen(line)); }

EXPORT("parley_call") uint64_t parley_call(const char *request, uint32_t len) {
  (void)len;
#define IS(tool) strstr(request, "\"tool\":\"" tool "\"") // no parameter of these tools contains such a text
  if (IS("test_simple_text")) return answer("{\"ok\":true,\"result\":\"A simple text\"}");
  if (IS("test_image_content")) return answer("{\"ok\":true,\"result\":" PNG "}");
  if (IS("test_audio_content")) return answer("{\"ok\":true,\"result\":" WAV "}");
  if (IS("test_embedded_resource")) return answer("{\"ok\":true,\"result\":" TEXT "}");
  if (IS("test_multiple_content_types")) return answer("{\"ok\":true,\"result\":{\"text\":\"Several at once\",\"image\":" PNG ",\"document\":" TEXT "}}");
  if (IS("test_error_handling")) return answer("{\"ok\":false,\"exit\":1,\"message\":\"The tool was asked to fail\"}");
  if (IS("test_tool_with_progress"))
    for (int i = 0; i < 3; i++) {
      if (i) usleep(60000); // a host reports at most one step in 50 ms
      progress(50 * i, 100, "", 0);
    }
  if (IS("test_tool_with_logging") || IS("test_logging_tool")) {
    say("it begins");
    say("it goes on");
    say("it ends");
  }
  return answer("{\"ok\":true,\"result\":\"done\"}");
}
