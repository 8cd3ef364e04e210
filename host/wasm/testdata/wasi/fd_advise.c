// fd_advise: advice about a file is accepted and changes nothing.
#include "check.h"

int main(void) {
  __wasi_fd_t fd;
  OK(open_at(ROOT, "advised", 0, __WASI_OFLAGS_CREAT, RW, 0, &fd));
  CHECK(put(fd, "content") == 7);
  for (int advice = __WASI_ADVICE_NORMAL; advice <= __WASI_ADVICE_NOREUSE; advice++) OK(__wasi_fd_advise(fd, 2, 100, advice));
  CHECK(stat_of(fd).size == 7 && offset_of(fd) == 7 && holds(fd, "content"));
  FAILS(__wasi_fd_advise(fd, 0, 0, __WASI_ADVICE_NOREUSE + 1), INVAL);
}
