//go:build race

package host_test

// raceDetector tells whether this test binary finds data races.
const raceDetector = true
