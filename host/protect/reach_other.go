//go:build !linux

package protect

import "os"

// mount is never known.
type mount struct{}

func mounts() []mount { return nil }

func (*Files) mounted([]mount, string, bool) string { return "" }

func pseudoFolder(string) bool { return false } // they are known by name

// PseudoFile reports whether an open file is part of a pseudo file system. Only Linux reports it.
func PseudoFile(*os.File) bool { return false }
