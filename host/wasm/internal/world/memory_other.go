//go:build !unix

package world

func NewPages(uint64) Pages { return &heapPages{} }
