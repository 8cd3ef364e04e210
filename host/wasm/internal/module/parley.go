package module

import "github.com/parley-tools/parley/host/wasm/internal/instrument"

// ParleyFunctions maps the functions that a guest of kind parley/1 may import to their types.
var ParleyFunctions = map[string]instrument.FuncType{
	"call_tool":    "i32,i32->i64",
	"http_request": "i32,i32->i64",
	"read_secret":  "i32,i32->i64",
	"log":          "i32,i32,i32->",
	"progress":     "f64,f64,i32,i32->",
}
