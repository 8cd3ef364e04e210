package cli

import (
	"github.com/parley-tools/parley"

	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(app *App) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "parley version --json",
		Args:    noWords,
		RunE:    func(*cobra.Command, []string) error { return app.printVersion() },
	}
}

func (a *App) printVersion() error {
	data := struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Go      string `json:"go"`
		OS      string `json:"os"`
		Arch    string `json:"arch"`
	}{"parley", parley.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
	return a.answer(data, nil, func(w io.Writer) { fmt.Fprintf(w, "parley %s\n", parley.Version) })
}
