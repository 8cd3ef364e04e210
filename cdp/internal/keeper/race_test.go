//go:build race

package keeper

// slow is how much longer things may take under the race detector, which costs most where many bytes are looked at.
const slow = 6
