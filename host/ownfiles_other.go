//go:build !linux

package host

import "os"

func pseudoFolder(string) bool { return false } // they are known by name

// PseudoFile reports whether an open file is part of a pseudo file system. Only Linux can tell.
func PseudoFile(*os.File) bool { return false }
