//go:build !unix

package policy

import "io/fs"

// Modes say nothing about others here: access lists do, and the profile's folder has them.
func writableByAll(fs.FileInfo) bool { return false }

func inode(fs.FileInfo) uint64 { return 0 }
