// Package durable makes changes to folders last through a crash of the machine.
package durable

// SyncDir makes the names in a folder last. Some file systems cannot: what they promise is all there is.
func SyncDir(path string) error { return syncDir(path) }
