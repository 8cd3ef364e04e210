//go:build !unix

package protect

// Nonblock are flags of open where opening may wait.
const Nonblock = 0
