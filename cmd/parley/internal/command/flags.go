package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-tools/parley/host"
)

// SessionName is the value of --session. It accepts the name of a session only, so that an empty shell variable never
// leads to the browser's default context.
type SessionName string

func (s *SessionName) String() string { return string(*s) }

func (s *SessionName) Type() string { return "string" }

func (s *SessionName) Set(name string) error {
	if err := host.CheckSessionName(name); err != nil {
		return err
	}
	*s = SessionName(name)
	return nil
}

// Texts is the value of an option that can be given several times. pflag's own writes its default as CSV, with a buffer
// of 4 KB for each option of each command line.
type Texts []string

func (t *Texts) String() string { return strings.Join(*t, ",") }

func (t *Texts) Type() string { return "stringArray" }

func (t *Texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

// FirstSet returns the first of these options that was given, "" if none was.
func FirstSet(cmd *cobra.Command, names ...string) string {
	for _, n := range names {
		if f := cmd.Flags().Lookup(n); f != nil && f.Changed {
			return n
		}
	}
	return ""
}
