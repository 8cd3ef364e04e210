//go:build !unix

package private

// Nonblock are flags of open where opening may wait.
const Nonblock = 0
