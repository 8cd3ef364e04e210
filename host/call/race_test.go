//go:build race

package call_test

// raceDetector reports whether this test binary detects data races.
const raceDetector = true
