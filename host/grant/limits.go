package grant

import "time"

// Quota is what a caller may use. A limit of 0 means no limit.
type Quota struct {
	Account    string // account under which the use is counted
	Rate       int    // calls in Per
	Per        time.Duration
	Concurrent int
	DailyCalls int               // a day is a calendar day in UTC
	DailyBytes int               // bytes of results
	In         map[string]string // where each limit is written, by its key: "policy.toml:12"
}

// Limits bound one call of a wasm plugin. Zero means the default, which package host/wasm documents.
type Limits struct {
	MemoryMiB       int
	Timeout         time.Duration
	OutputBytes     int
	LogBytes        int
	HostCalls       int // calls of call_tool, http_request and read_secret together
	OpenFiles       int // at one time
	FilesCreated    int
	BytesWritten    int // to granted folders
	ConcurrentCalls int // calls of the plugin in one host
}

// The largest values that a policy can set in [ModuleLimits].
const (
	MaxModuleMiB    = 256
	MaxFunctions    = 4_000_000
	MaxTableEntries = 4_000_000
)

// ModuleLimits bound the module of a plugin and its compilation. Zero means the default, which package host/wasm
// documents.
type ModuleLimits struct {
	FileMiB          int
	Functions        int
	TableEntries     int // entries of each table
	CompileTime      time.Duration
	CompileMemoryMiB int
}
