//go:build race

package wasm

// raceDetector tells whether this test binary finds data races.
const raceDetector = true
