//go:build !race

package keeper

const slow = 1
