// Package cli is Parley's command line as a whole: the tree of commands, what an unknown line means, and the checks of
// what is offered as next.
package cli

import (
	"errors"
	"log"
	"runtime/debug"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Main runs one command line and returns its exit code.
func Main(args []string, streams *command.Streams) (code int) {
	app := newFront(streams, args)
	defer app.Close()
	// Libraries log foreign text, so their lines are cleaned, and shown with --debug only.
	log.SetFlags(0)
	log.SetOutput(lines(func(line string) { app.Debugf("%s", manifest.CleanLine(line)) }))
	defer func() {
		if fault := recover(); fault != nil {
			app.Debugf("%s", debug.Stack())
			code = app.Fail(host.Errorf(host.Internal, "internal error: %v", fault))
		}
	}()

	root := newRootFor(app, args, nil)
	root.SetArgs(args)
	err := root.ExecuteContext(command.CountDocs(app.Signaled, app.WriteErrorDocs))
	if err == nil {
		err = app.HelpErr // cobra's help cannot fail
	}
	if err == nil {
		app.ToText()
		return 0
	}
	if again, is := errors.AsType[*retyped](err); is {
		return Main(again.args, streams)
	}
	if ended, is := errors.AsType[*command.ExitStatus](err); is {
		app.ToText()
		return ended.Code // everything has been printed
	}
	return app.Fail(err)
}

// lines is a writer that passes each write to a function.
type lines func(string)

func (f lines) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}
