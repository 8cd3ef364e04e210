package host

import "io/fs"

func identify(fs.FileInfo) (FileID, uint64) { return FileID{}, 1 }
