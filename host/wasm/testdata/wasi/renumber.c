// renumber: a descriptor moves to another number and closes the previous one.
#include "check.h"

int main(void) {
  __wasi_fd_t from, to;
  __wasi_fdstat_t st;
  OK(open_at(ROOT, "from", 0, __WASI_OFLAGS_CREAT, RW, 0, &from));
  put(from, "from");
  OK(open_at(ROOT, "to", 0, __WASI_OFLAGS_CREAT, RW, 0, &to));
  OK(__wasi_fd_renumber(from, to));
  FAILS(__wasi_fd_fdstat_get(from, &st), BADF);
  CHECK(holds(to, "from"));
}
