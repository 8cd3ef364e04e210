//go:build !unix

package durable

// syncDir does nothing: Windows has no such call, and NTFS journals names by itself.
func syncDir(string) error { return nil }
