//go:build race

package keeper

// raceFactor is how much longer operations may take under the race detector. It costs most where many bytes are
// processed.
const raceFactor = 6
