//go:build !unix

package protect

import "io/fs"

// Other systems have access lists instead of owners and modes, and a user's own folders have theirs.
func ownedByUser(fs.FileInfo) bool { return true }
func ownedByRoot(fs.FileInfo) bool { return true }
