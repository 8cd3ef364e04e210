//go:build !linux && !darwin

package audit

// writeUnderLimit requires a limit on the size of files, which this system does not have.
func writeUnderLimit(string, string) int { return 2 }
