//go:build !race

package wasm

// raceDetector reports whether the race detector is enabled.
const raceDetector = false
