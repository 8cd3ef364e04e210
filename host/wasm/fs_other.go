//go:build !unix

package wasm

import (
	"os"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
)

const openNonblock = 0

func setAppend(*os.File, bool) error { return experimentalsys.ENOTSUP }

func inodeOf(*os.File, string) uint64 { return 0 }

func renameOver(*os.Root, string, string) error { return experimentalsys.EEXIST }
