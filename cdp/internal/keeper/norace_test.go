//go:build !race

package keeper

const raceFactor = 1
