//go:build !unix

package world

import (
	"os"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/parley-tools/parley/host/protect"
)

func setAppend(*os.File, bool) error { return experimentalsys.ENOTSUP }

func parentsOf(*os.File) []protect.FileID { return nil }

func inodeOf(*os.File, string) uint64 { return 0 }

// RenameOver always fails on this system.
func RenameOver(*os.Root, string, string) error { return experimentalsys.EEXIST }
