// A guest that makes the WASI calls of a script on standard input, one statement after another, without a C library, which
// would check arguments and rights itself.
//
//     clang --target=wasm32 -O2 -Wall -Wextra -nostdlib -fno-builtin -Wl,--export=_start,--no-entry,-z,stack-size=65536 -s -o wasi.wasm wasi.c
//
// Statements are separated by ";": the name of a function and its arguments in WASI's order. An argument is
//
//     12, -1, 0xff    a number
//     'text'          a text: two arguments, its address and its length; ~ff is the byte 0xff
//     @               the address for a result
//     $               the last descriptor from path_open; $$ is the one before
//     <64> <64*3>     one or three vectors of the same 64 bytes: two arguments, the address of the vectors and their number
//     <'text'>        one vector, of a text
//     ^               the address of the buffer (1 MiB)
//
// "1000x" before a statement repeats it. "print" prints the bytes of the last read. Each statement prints a word: ok, or
// the name of the error. "=" before a statement also prints the last result.

typedef unsigned int u32;
typedef unsigned long long u64;

#define WASI(name, ...) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name))) int name(__VA_ARGS__)
WASI(args_get, u32, u32);
WASI(args_sizes_get, u32, u32);
WASI(environ_get, u32, u32);
WASI(environ_sizes_get, u32, u32);
WASI(clock_res_get, u32, u32);
WASI(clock_time_get, u32, u64, u32);
WASI(fd_advise, u32, u64, u64, u32);
WASI(fd_allocate, u32, u64, u64);
WASI(fd_close, u32);
WASI(fd_datasync, u32);
WASI(fd_fdstat_get, u32, u32);
WASI(fd_fdstat_set_flags, u32, u32);
WASI(fd_fdstat_set_rights, u32, u64, u64);
WASI(fd_filestat_get, u32, u32);
WASI(fd_filestat_set_size, u32, u64);
WASI(fd_filestat_set_times, u32, u64, u64, u32);
WASI(fd_pread, u32, u32, u32, u64, u32);
WASI(fd_prestat_dir_name, u32, u32, u32);
WASI(fd_prestat_get, u32, u32);
WASI(fd_pwrite, u32, u32, u32, u64, u32);
WASI(fd_read, u32, u32, u32, u32);
WASI(fd_readdir, u32, u32, u32, u64, u32);
WASI(fd_renumber, u32, u32);
WASI(fd_seek, u32, u64, u32, u32);
WASI(fd_sync, u32);
WASI(fd_tell, u32, u32);
WASI(fd_write, u32, u32, u32, u32);
WASI(path_create_directory, u32, u32, u32);
WASI(path_filestat_get, u32, u32, u32, u32, u32);
WASI(path_filestat_set_times, u32, u32, u32, u32, u64, u64, u32);
WASI(path_link, u32, u32, u32, u32, u32, u32, u32);
WASI(path_open, u32, u32, u32, u32, u32, u64, u64, u32, u32);
WASI(path_readlink, u32, u32, u32, u32, u32, u32);
WASI(path_remove_directory, u32, u32, u32);
WASI(path_rename, u32, u32, u32, u32, u32, u32);
WASI(path_symlink, u32, u32, u32, u32, u32);
WASI(path_unlink_file, u32, u32, u32);
WASI(poll_oneoff, u32, u32, u32, u32);
WASI(proc_raise, u32);
WASI(random_get, u32, u32);
WASI(sched_yield, void);
WASI(sock_accept, u32, u32, u32);
WASI(sock_recv, u32, u32, u32, u32, u32, u32);
WASI(sock_send, u32, u32, u32, u32, u32);
WASI(sock_shutdown, u32, u32);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("proc_exit"), noreturn)) void proc_exit(u32);

static const char *const errors[] = {"ok", "toobig", "acces", "addrinuse", "addrnotavail", "afnosupport", "again", "already", "badf", "badmsg", "busy",
	"canceled", "child", "connaborted", "connrefused", "connreset", "deadlk", "destaddrreq", "dom", "dquot", "exist", "fault", "fbig", "hostunreach",
	"idrm", "ilseq", "inprogress", "intr", "inval", "io", "isconn", "isdir", "loop", "mfile", "mlink", "msgsize", "multihop", "nametoolong", "netdown",
	"netreset", "netunreach", "nfile", "nobufs", "nodev", "noent", "noexec", "nolck", "nolink", "nomem", "nomsg", "noprotoopt", "nospc", "nosys",
	"notconn", "notdir", "notempty", "notrecoverable", "notsock", "notsup", "notty", "nxio", "overflow", "ownerdead", "perm", "pipe", "proto",
	"protonosupport", "prototype", "range", "rofs", "spipe", "srch", "stale", "timedout", "txtbsy", "xdev", "notcapable"};

static char script[4 << 20], texts[4 << 20], buffer[1 << 20];
static struct { u32 at, len; } vectors[1 << 16];
static u64 slots[4];
static u32 slot, length, used, opened, before;

static int same(const char *a, const char *b) {
	while (*a && *a == *b) a++, b++;
	return *a == *b;
}

static void say(const char *text, u32 len) {
	u32 v[2] = {(u32)text, len}, n;
	fd_write(1, (u32)v, 1, (u32)&n);
}

static void says(const char *text) {
	u32 n = 0;
	while (text[n]) n++;
	say(text, n);
}

static void number(u64 v) {
	char digits[20];
	int at = 20;
	do digits[--at] = '0' + v % 10; while (v /= 10);
	say(digits + at, 20 - at);
}

// The arguments of the current statement.
static u64 a[16];

#define CALL(f, ...) if (same(name, #f)) return f(__VA_ARGS__);
static int call(const char *name) {
	CALL(args_get, a[0], a[1]) CALL(args_sizes_get, a[0], a[1]) CALL(environ_get, a[0], a[1]) CALL(environ_sizes_get, a[0], a[1])
	CALL(clock_res_get, a[0], a[1]) CALL(clock_time_get, a[0], a[1], a[2]) CALL(fd_advise, a[0], a[1], a[2], a[3]) CALL(fd_allocate, a[0], a[1], a[2])
	CALL(fd_close, a[0]) CALL(fd_datasync, a[0]) CALL(fd_fdstat_get, a[0], a[1]) CALL(fd_fdstat_set_flags, a[0], a[1])
	CALL(fd_fdstat_set_rights, a[0], a[1], a[2]) CALL(fd_filestat_get, a[0], a[1]) CALL(fd_filestat_set_size, a[0], a[1])
	CALL(fd_filestat_set_times, a[0], a[1], a[2], a[3]) CALL(fd_pread, a[0], a[1], a[2], a[3], a[4]) CALL(fd_prestat_dir_name, a[0], a[1], a[2])
	CALL(fd_prestat_get, a[0], a[1]) CALL(fd_pwrite, a[0], a[1], a[2], a[3], a[4]) CALL(fd_read, a[0], a[1], a[2], a[3])
	CALL(fd_readdir, a[0], a[1], a[2], a[3], a[4]) CALL(fd_renumber, a[0], a[1]) CALL(fd_seek, a[0], a[1], a[2], a[3]) CALL(fd_sync, a[0])
	CALL(fd_tell, a[0], a[1]) CALL(fd_write, a[0], a[1], a[2], a[3]) CALL(path_create_directory, a[0], a[1], a[2])
	CALL(path_filestat_get, a[0], a[1], a[2], a[3], a[4]) CALL(path_filestat_set_times, a[0], a[1], a[2], a[3], a[4], a[5], a[6])
	CALL(path_link, a[0], a[1], a[2], a[3], a[4], a[5], a[6]) CALL(path_open, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8])
	CALL(path_readlink, a[0], a[1], a[2], a[3], a[4], a[5]) CALL(path_remove_directory, a[0], a[1], a[2])
	CALL(path_rename, a[0], a[1], a[2], a[3], a[4], a[5]) CALL(path_symlink, a[0], a[1], a[2], a[3], a[4]) CALL(path_unlink_file, a[0], a[1], a[2])
	CALL(poll_oneoff, a[0], a[1], a[2], a[3]) CALL(proc_raise, a[0]) CALL(random_get, a[0], a[1]) CALL(sched_yield) CALL(sock_accept, a[0], a[1], a[2])
	CALL(sock_recv, a[0], a[1], a[2], a[3], a[4], a[5]) CALL(sock_send, a[0], a[1], a[2], a[3], a[4]) CALL(sock_shutdown, a[0], a[1])
	if (same(name, "proc_exit")) proc_exit(a[0]);
	if (same(name, "print")) {
		say(buffer, slots[slot] < sizeof buffer ? slots[slot] : sizeof buffer);
		says(" ");
		return -1;
	}
	says("no such statement: ");
	says(name);
	proc_exit(70);
}

static char *at;

static u64 digits(void) {
	u64 v = 0;
	int minus = *at == '-' && at++;
	if (at[0] == '0' && at[1] == 'x') {
		for (at += 2;; at++) {
			if (*at >= '0' && *at <= '9') v = v << 4 | (*at - '0');
			else if (*at >= 'a' && *at <= 'f') v = v << 4 | (*at - 'a' + 10);
			else break;
		}
	} else
		for (; *at >= '0' && *at <= '9'; at++) v = v * 10 + (*at - '0');
	return minus ? -v : v;
}

static int hex(char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; }

// text reads 'text' and returns its address.
static char *text(u32 *len) {
	char *from = texts + used;
	for (at++; *at != '\'' && at < script + length; at++) {
		if (*at == '~') texts[used++] = hex(at[1]) << 4 | hex(at[2]), at += 2;
		else texts[used++] = *at;
	}
	at++;
	*len = texts + used - from;
	return from;
}

// argument reads one argument and appends its values.
static int argument(int n) {
	switch (*at) {
	case '\'': {
		u32 len;
		a[n++] = (u32)text(&len);
		a[n++] = len;
		break;
	}
	case '@':
		at++;
		slot = (slot + 1) & 3;
		slots[slot] = 0;
		a[n++] = (u32)&slots[slot];
		break;
	case '$':
		at++;
		if (*at == '$')
			at++, a[n++] = before;
		else
			a[n++] = opened;
		break;
	case '^':
		at++;
		a[n++] = (u32)buffer;
		break;
	case '<': {
		u32 where = (u32)buffer, len, count = 1;
		at++;
		if (*at == '\'')
			where = (u32)text(&len);
		else
			len = digits();
		if (*at == '*') at++, count = digits();
		at++;
		for (u32 i = 0; i < count && i < sizeof vectors / sizeof *vectors; i++) vectors[i].at = where, vectors[i].len = len;
		a[n++] = (u32)vectors;
		a[n++] = count;
		break;
	}
	default:
		a[n++] = digits();
	}
	return n;
}

static void statement(void) {
	u64 times = 1;
	int shown = *at == '=' && at++;
	if (*at >= '0' && *at <= '9') {
		times = digits();
		at++; // x
		while (*at == ' ') at++;
	}
	char name[40] = {0};
	for (u32 i = 0; *at && *at != ' ' && *at != ';'; at++)
		if (i < sizeof name - 1) name[i++] = *at;
	int n = 0;
	char *from = at;
	int error = 0;
	for (u64 i = 0; i < times; i++) {
		n = used = 0;
		for (at = from; *at && *at != ';' && n < 14;) {
			if (*at == ' ') at++;
			else n = argument(n);
		}
		error = call(name);
		if (!error && same(name, "path_open")) before = opened, opened = slots[slot];
	}
	if (error < 0) return;
	says((u32)error < sizeof errors / sizeof *errors ? errors[error] : "unknown");
	says(" ");
	if (shown) number(slots[slot]), says(" ");
}

void _start(void) {
	u32 v[2], n;
	do {
		v[0] = (u32)script + length;
		v[1] = sizeof script - 1 - length;
		if (fd_read(0, (u32)v, 1, (u32)&n)) proc_exit(71);
		length += n;
	} while (n);
	for (at = script; *at;) {
		if (*at == ';' || *at == ' ' || *at == '\n') at++;
		else statement();
	}
}
