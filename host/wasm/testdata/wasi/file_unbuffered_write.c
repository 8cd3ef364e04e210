// file_unbuffered_write: another descriptor of the same file immediately reads what one has written.
#include "check.h"

int main(void) {
  __wasi_fd_t reader, writer;
  OK(open_at(ROOT, "shared", 0, __WASI_OFLAGS_CREAT, __WASI_RIGHTS_FD_READ, 0, &reader));
  OK(open_at(ROOT, "shared", 0, 0, __WASI_RIGHTS_FD_WRITE, 0, &writer));
  CHECK(put(writer, "a") == 1);
  CHECK(holds(reader, "a"));
  CHECK(put(writer, "b") == 1);
  CHECK(holds(reader, "ab") && offset_of(reader) == 0);
  OK(__wasi_fd_filestat_set_size(writer, 0));
  CHECK(holds(reader, ""));
}
