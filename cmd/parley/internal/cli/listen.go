package cli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/parley-tools/parley/cmd/parley/internal/command"
	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// runListen streams events to stdout, one JSON line each. The last line says why the stream ended. It exits with the
// code of a timeout if the event of --until did not come.
func runListen(ctx context.Context, app *App, opts command.ListenOptions) error {
	stream, err := command.Listen(ctx, app.deps, opts, app.printRecord)
	switch {
	case stream == nil:
		return err
	case stream.Answer.Err != nil:
		if code := stream.Answer.Err.Code; stream.Began && (code == host.Interrupted || code == host.Terminated) {
			_, _ = io.WriteString(app.Out, `{"end":"closed"}`+"\n")
		}
		return app.failed(stream.Answer)
	case err != nil:
		return err
	case opts.DryRun:
		return app.printEnvelope(app.deps.Envelope(stream.Answer), nil)
	}
	line, err := manifest.Marshal(stream.StreamEnd)
	if err != nil {
		return err
	}
	if err := app.printRecord(line); err != nil {
		return writeError(err)
	}
	if stream.Unmet {
		return &exitStatus{host.Errorf(host.Timeout, "").ExitCode()}
	}
	return nil
}

// printRecord prints a JSON document as a line.
func (a *App) printRecord(record json.RawMessage) error {
	_, err := a.Out.Write(append(manifest.EscapeJSON(record), '\n'))
	return err
}
