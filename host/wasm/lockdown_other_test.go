//go:build !linux

package wasm

// probeJob runs only on Linux.
const probeJob = "probe"

func probeMain() int { return 1 }
