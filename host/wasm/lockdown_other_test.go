//go:build !linux

package wasm

// probeJob is tried on Linux alone.
const probeJob = "probe"

func probeMain() int { return 1 }
