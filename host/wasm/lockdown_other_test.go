//go:build !linux || !(amd64 || arm64)

package wasm

// probeJob runs only on Linux.
const probeJob = "probe"

func probeMain() int { return 1 }
