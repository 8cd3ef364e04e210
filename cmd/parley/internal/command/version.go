package command

import (
	"runtime"

	"github.com/parley-tools/parley"
)

// VersionData says which build of parley this is.
type VersionData struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// Version returns the version of this build.
func Version() *VersionData {
	return &VersionData{"parley", parley.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
}
