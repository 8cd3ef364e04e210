//go:build !unix

package wasm

import "io/fs"

func inodeOf(fs.FileInfo) uint64 { return 0 }
