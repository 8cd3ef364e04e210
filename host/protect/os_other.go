//go:build !unix

package protect

import "io/fs"

// Nonblock are the flags that keep open from waiting. These systems have none.
const Nonblock = 0

// OwnedByUser reports whether a file belongs to this user. Other systems have access lists instead of owners and modes,
// and a user's own folders have theirs.
func OwnedByUser(fs.FileInfo) bool { return true }

func ownedByRoot(fs.FileInfo) bool { return true }

// IDOf returns no identity: these systems do not give one.
func IDOf(fs.FileInfo) (FileID, uint64) { return FileID{}, 1 }
