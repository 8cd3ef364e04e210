// Package durable makes changes to folders survive a crash of the machine.
package durable

// SyncDir flushes the entries of a folder to disk. File systems that cannot do so are not an error.
func SyncDir(path string) error { return syncDir(path) }
