// Package admin has the commands of the operator: policy, secrets, settings, sessions, runners and doctor.
package admin

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/manifest"
)

// Commands are the commands that this package has.
var Commands = []command.Entry{
	{Name: "session", New: newSession}, {Name: "policy", New: newPolicy}, {Name: "doctor", New: newDoctor},
	{Name: "runner", New: newRunner}, {Name: "secret", New: newSecret}, {Name: "config", New: newConfig},
}

func newConfig(app *command.App) *cobra.Command {
	return command.Parent("config", "Settings", newConfigList(app))
}

func newConfigList(app *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "Show each setting, its value and where it comes from",
		Example: "parley config list --json",
		RunE:    command.RunWith(runConfigList, app),
	}
}

func runConfigList(_ context.Context, app *command.App) error {
	data, err := config(app)
	if err != nil {
		return err
	}
	next := []string{"edit " + filepath.Join(app.Dirs().Config, "config.toml")}
	return app.Print(data, next, func(w io.Writer) {
		for _, v := range data.Settings {
			fmt.Fprintf(w, "%-24s %-12s %s\n%24s %s\n", v.Name, shownValue(v.Value), v.Source, "", v.Description)
		}
		for _, p := range data.Paths {
			fmt.Fprintf(w, "%-24s %s\n", p.Name, p.Path)
		}
	})
}

func shownValue(v string) string {
	if v == "" {
		return `""`
	}
	return manifest.CleanLine(v)
}

// configData are all settings and folders.
type configData struct {
	Settings []command.SettingValue `json:"settings"`
	Paths    []command.NamedPath    `json:"paths"`
}

// config returns each setting with its value and its source, and the folders of the host.
func config(app *command.App) (*configData, error) {
	s, err := app.Settings()
	if err != nil {
		return nil, err
	}
	return &configData{s.Values, command.Folders(app)}, nil
}
