package sdk

import (
	"strconv"
	"strings"
)

// File is a file that the host has opened for a tool. It is the type of a
// parameter with the tag handed:"true", to which [Doc].Files points. The plugin
// sees the name and the size, and passes the file on to a tool that takes such
// files, as cdp.script does.
type File string

// Name returns the name of the file without its folder.
func (f File) Name() string {
	_, name := f.parts()
	return name
}

// Size returns the number of bytes.
func (f File) Size() int64 {
	size, _ := f.parts()
	return size
}

// parts reads "handed:RANDOM/SIZE/NAME". Without a host the text is a path.
func (f File) parts() (size int64, name string) {
	parts := strings.SplitN(string(f), "/", 3)
	if !strings.HasPrefix(string(f), "handed:") || len(parts) < 3 {
		return 0, string(f[strings.LastIndexByte(string(f), '/')+1:])
	}
	size, _ = strconv.ParseInt(parts[1], 10, 64)
	return size, parts[2]
}
