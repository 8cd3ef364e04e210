//go:build unix && !linux

package world

const mapNoReserve = 0

func preferHugePages([]byte) {}
