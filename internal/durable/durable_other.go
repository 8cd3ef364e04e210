//go:build !unix

package durable

// syncDir does nothing: Windows has no such call, and NTFS journals its folders.
func syncDir(string) error { return nil }
