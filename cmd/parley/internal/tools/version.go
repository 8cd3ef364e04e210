package tools

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley"
	"github.com/parley-tools/parley/cmd/parley/internal/command"
)

type versionOptions struct{ app *command.App }

func newVersion(app *command.App) *cobra.Command {
	opts := &versionOptions{app: app}
	return &cobra.Command{
		Use:     "version",
		Short:   "Version",
		Example: "parley version --json",
		RunE:    command.RunWith(runVersion, opts),
	}
}

func runVersion(_ context.Context, opts *versionOptions) error {
	data := version()
	return opts.app.Print(data, nil, func(w io.Writer) { fmt.Fprintf(w, "parley %s\n", data.Version) })
}

// versionData says which build of parley this is.
type versionData struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// version returns the version of this build.
func version() *versionData {
	return &versionData{"parley", parley.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
}
