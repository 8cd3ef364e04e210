package admin

import "golang.org/x/sys/windows"

// freeSpace returns the number of bytes that a user can still write below dir.
func freeSpace(dir string) (uint64, bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if windows.GetDiskFreeSpaceEx(path, &free, nil, nil) != nil {
		return 0, false
	}
	return free, true
}
