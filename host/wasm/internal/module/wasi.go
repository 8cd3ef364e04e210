package module

import (
	"sync"

	"github.com/parley-tools/parley/host/wasm/internal/instrument"
)

// Modules that the host provides: preview 1 of WASI, and the functions of sdk/abi.md.
const (
	WasiModule   = "wasi_snapshot_preview1"
	ParleyModule = "parley"
)

// Bounds of arguments to WASI functions. wazero has no such bounds: its descriptor table grows up to the number given
// to fd_renumber, and it processes vectors and paths without checking the context.
const (
	MaxVectors    = 1024
	MaxDescriptor = 4096
	MaxPath       = 4096
	MaxEntries    = 1 << 20 // bytes of directory entries

	ErrnoBadf        = 8
	ErrnoInval       = 28
	ErrnoNametoolong = 37
)

// WasiGuards returns the guards that instrumentation puts around WASI functions, of both versions.
var WasiGuards = sync.OnceValue(func() map[string]instrument.Guard {
	g := map[string]instrument.Guard{}
	add := func(name string, limit uint32, errno int32, params ...int) {
		g[name] = instrument.Guard{Type: WasiFunctions[name], Params: params, Max: limit, Errno: errno}
	}
	add("fd_renumber", MaxDescriptor, ErrnoBadf, 1)
	for _, name := range []string{"fd_read", "fd_pread", "fd_write", "fd_pwrite"} {
		add(name, MaxVectors, ErrnoInval, 2)
	}
	add("poll_oneoff", MaxVectors, ErrnoInval, 2)
	for _, name := range []string{"path_create_directory", "path_remove_directory", "path_unlink_file", "path_readlink"} {
		add(name, MaxPath, ErrnoNametoolong, 2)
	}
	for _, name := range []string{"path_open", "path_filestat_get", "path_filestat_set_times"} {
		add(name, MaxPath, ErrnoNametoolong, 3)
	}
	add("fd_readdir", MaxEntries, ErrnoInval, 2)
	add("path_link", MaxPath, ErrnoNametoolong, 3, 6)
	add("path_rename", MaxPath, ErrnoNametoolong, 2, 5)
	add("path_symlink", MaxPath, ErrnoNametoolong, 1, 4)
	// a call may take a tenth of a millisecond or more
	for _, name := range []string{"args_get", "environ_get", "fd_readdir", "poll_oneoff"} {
		guard := g[name]
		guard.Type, guard.Heavy = WasiFunctions[name], true
		g[name] = guard
	}
	all := make(map[string]instrument.Guard, 2*len(g)+len(unstableCode))
	for name, guard := range g {
		all[WasiModule+"."+name], all[UnstableModule+"."+name] = guard, guard
	}
	for name, code := range unstableCode {
		guard := all[UnstableModule+"."+name]
		guard.Type, guard.Before, guard.After = WasiFunctions[name], code.before, code.after
		all[UnstableModule+"."+name] = guard
	}
	return all
})

// WasiFunctions maps the functions of WASI preview 1 to their types.
var WasiFunctions = map[string]instrument.FuncType{
	"args_get":                "i32,i32->i32",
	"args_sizes_get":          "i32,i32->i32",
	"clock_res_get":           "i32,i32->i32",
	"clock_time_get":          "i32,i64,i32->i32",
	"environ_get":             "i32,i32->i32",
	"environ_sizes_get":       "i32,i32->i32",
	"fd_advise":               "i32,i64,i64,i32->i32",
	"fd_allocate":             "i32,i64,i64->i32",
	"fd_close":                "i32->i32",
	"fd_datasync":             "i32->i32",
	"fd_fdstat_get":           "i32,i32->i32",
	"fd_fdstat_set_flags":     "i32,i32->i32",
	"fd_fdstat_set_rights":    "i32,i64,i64->i32",
	"fd_filestat_get":         "i32,i32->i32",
	"fd_filestat_set_size":    "i32,i64->i32",
	"fd_filestat_set_times":   "i32,i64,i64,i32->i32",
	"fd_pread":                "i32,i32,i32,i64,i32->i32",
	"fd_prestat_dir_name":     "i32,i32,i32->i32",
	"fd_prestat_get":          "i32,i32->i32",
	"fd_pwrite":               "i32,i32,i32,i64,i32->i32",
	"fd_read":                 "i32,i32,i32,i32->i32",
	"fd_readdir":              "i32,i32,i32,i64,i32->i32",
	"fd_renumber":             "i32,i32->i32",
	"fd_seek":                 "i32,i64,i32,i32->i32",
	"fd_sync":                 "i32->i32",
	"fd_tell":                 "i32,i32->i32",
	"fd_write":                "i32,i32,i32,i32->i32",
	"path_create_directory":   "i32,i32,i32->i32",
	"path_filestat_get":       "i32,i32,i32,i32,i32->i32",
	"path_filestat_set_times": "i32,i32,i32,i32,i64,i64,i32->i32",
	"path_link":               "i32,i32,i32,i32,i32,i32,i32->i32",
	"path_open":               "i32,i32,i32,i32,i32,i64,i64,i32,i32->i32",
	"path_readlink":           "i32,i32,i32,i32,i32,i32->i32",
	"path_remove_directory":   "i32,i32,i32->i32",
	"path_rename":             "i32,i32,i32,i32,i32,i32->i32",
	"path_symlink":            "i32,i32,i32,i32,i32->i32",
	"path_unlink_file":        "i32,i32,i32->i32",
	"poll_oneoff":             "i32,i32,i32,i32->i32",
	"proc_exit":               "i32->",
	"proc_raise":              "i32->i32",
	"random_get":              "i32,i32->i32",
	"sched_yield":             "->i32",
	"sock_accept":             "i32,i32,i32->i32",
	"sock_recv":               "i32,i32,i32,i32,i32,i32->i32",
	"sock_send":               "i32,i32,i32,i32,i32->i32",
	"sock_shutdown":           "i32,i32->i32",
}
