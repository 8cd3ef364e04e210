package module

import "github.com/parley-tools/parley/host/wasm/internal/instrument"

// Modules whose functions Extism plugins import: Extism itself, and the program that embeds it.
const (
	ExtismModule = "extism:host/env"
	ExtismUser   = "extism:host/user"
)

// ExtismFunctions maps the functions of [ExtismModule] to their types. Most numbers are addresses in a memory of the
// host, which a guest can access only through these functions. 0 means no memory. Source: extism.org's runtime
// kernel, and the imports of its development kits.
var ExtismFunctions = map[string]instrument.FuncType{
	"alloc": "i64->i64", "free": "i64->", "length": "i64->i64", "length_unsafe": "i64->i64",
	"load_u8": "i64->i32", "load_u64": "i64->i64", "store_u8": "i64,i32->", "store_u64": "i64,i64->",
	"input_length": "->i64", "input_load_u8": "i64->i32", "input_load_u64": "i64->i64",
	"output_set": "i64,i64->", "error_set": "i64->",
	"config_get": "i64->i64", "var_get": "i64->i64", "var_set": "i64,i64->",
	"http_request": "i64,i64->i64", "http_status_code": "->i32", "http_headers": "->i64",
	"get_log_level": "->i32", "log_trace": "i64->", "log_debug": "i64->", "log_info": "i64->", "log_warn": "i64->",
	"log_error": "i64->",
}

// ExtismExports are the exports of a plugin that lists tools in the way of MCP, in the first form and in the second.
var ExtismExports = [2]struct{ List, Call string }{{"describe", "call"}, {"list_tools", "call_tool"}}

// ExtismForm returns the form of a plugin's exports. ok is false if the plugin does not list tools.
func ExtismForm(module *instrument.Module) (form int, ok bool) {
	for i, names := range ExtismExports {
		if module.Export(names.List) != nil && module.Export(names.Call) != nil {
			return i, true
		}
	}
	return 0, false
}
