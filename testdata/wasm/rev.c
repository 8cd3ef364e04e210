// rev: an ordinary command line program that is independent of Parley. Its manifest is beside it.
//
//   rev [-n LINES] [--upper=true] [-j] [-f FILE] [-o FILE] [-e NAME] [-x CODE] [TEXT]
//
// Writes TEXT, or each line of FILE or of standard input, backwards. Exits with 0, with 3 without anything to write, with
// 4 for an invalid option, and with CODE if -x is given.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, const char *which) {
  fprintf(stderr, "rev: %s: %s\n", what, which);
  return 4;
}

static void reverse(char *s, size_t n, int upper) {
  for (size_t i = 0; i < n / 2; i++) {
    char c = s[i];
    s[i] = s[n - 1 - i];
    s[n - 1 - i] = c;
  }
  for (size_t i = 0; upper && i < n; i++) s[i] = toupper((unsigned char)s[i]);
}

int main(int argc, char **argv) {
  long limit = -1, written = 0, bytes = 0;
  int upper = 0, json = 0;
  char *text = NULL;
  FILE *in = stdin, *out = stdout;
  for (int i = 1; i < argc; i++) {
    const char *option = argv[i];
    if (option[0] != '-' || !option[1]) {
      text = argv[i];
    } else if (!strcmp(option, "-j")) {
      json = 1;
    } else if (!strncmp(option, "--upper=", 8)) {
      upper = !strcmp(option + 8, "true");
    } else if (!strchr("nfoex", option[1]) || option[2] || i + 1 == argc) {
      return fail("unknown option, or one without its value", option);
    } else {
      char *value = argv[++i];
      if (option[1] == 'n') limit = atol(value);
      if (option[1] == 'f' && !(in = fopen(value, "r"))) return fail("cannot read", value);
      if (option[1] == 'o' && !(out = fopen(value, "w"))) return fail("cannot write", value);
      if (option[1] == 'e' && !(text = getenv(value))) return fail("not in the environment", value);
      if (option[1] == 'x') {
        fprintf(stderr, "rev: asked to end in %s\n", value);
        return atoi(value);
      }
    }
  }
  if (text) {
    bytes = strlen(text);
    reverse(text, bytes, upper);
    written = 1;
    if (!json) fprintf(out, "%s\n", text);
  } else {
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while (limit-- && (n = getline(&line, &room, in)) > 0) {
      if (line[n - 1] == '\n') line[--n] = 0;
      reverse(line, n, upper);
      written++;
      bytes += n;
      if (!json) fprintf(out, "%s\n", line);
    }
    free(line);
  }
  if (!written) {
    fprintf(stderr, "rev: nothing to write\n");
    return 3;
  }
  if (json) fprintf(out, "{\"lines\":%ld,\"bytes\":%ld}\n", written, bytes);
  return fclose(out) ? fail("cannot write", "output") : 0;
}
