// A plugin for Extism that lists tools as MCP does, in Go with Extism's own development kit. Parley's tests build it.
module extism

go 1.26

require github.com/extism/go-pdk v1.1.3
