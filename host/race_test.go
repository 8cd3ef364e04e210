//go:build race

package host_test

// raceDetector reports whether this test binary detects data races.
const raceDetector = true
