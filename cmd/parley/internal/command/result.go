package command

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/host/jq"
	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/schema"
)

// ResultOptions are the options of reading a result that was kept.
type ResultOptions struct {
	ID  string // of the call
	JQ  string // filters the result; "" leaves it as it is
	Out string // a file that takes the result, decoded if it is binary; "" means none
}

// Result returns the whole result of a call of the current session that was cut. With Out, and for a binary result, it
// is a [host.File]. The error is not_found if nothing is kept for the call.
func Result(ctx context.Context, d *Deps, o ResultOptions) (json.RawMessage, error) {
	sessions := d.Parley().Sessions()
	session, err := d.Session()
	if err != nil {
		return nil, err
	}
	kept, err := sessions.Kept(session, o.ID)
	if err != nil {
		return nil, noResult(o.ID, sessions.KeptIDs(session))
	}
	if !kept.JSON {
		return copyOut(kept.Path, o)
	}
	data, err := sessions.Result(session, o.ID)
	if err != nil {
		return nil, noResult(o.ID, nil)
	}
	if o.JQ != "" {
		if data, err = d.filterKept(ctx, o, data); err != nil {
			return nil, err
		}
	}
	if o.Out == "" {
		return data, nil
	}
	file := &outFile{path: o.Out, filtered: o.JQ != ""}
	defer file.discard()
	if catalog, err := d.Catalog(); err == nil && kept.Tool != "" {
		if at, err := catalog.Find(kept.Tool); err == nil && at.Tool != nil {
			file.returns = at.Tool.Returns
		}
	}
	return file.whole(data)
}

// filterKept filters a result, for as long as a call may take.
func (d *Deps) filterKept(ctx context.Context, o ResultOptions, data json.RawMessage) (json.RawMessage, error) {
	corrected, err := jq.Check(o.JQ)
	if err != nil {
		e := host.AsError(err)
		if corrected != "" {
			e = e.WithSteps(host.OperatorStep(host.OpResult, o.ID, "--jq", corrected))
		}
		return nil, e
	}
	s, err := d.Settings()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, host.DefaultTimeout))
	defer cancel()
	return jq.InProcess{}.Filter(ctx, o.JQ, data)
}

// copyOut copies binary content to the file of o, and returns it as a [host.File]; without Out, the file that is kept.
func copyOut(path string, o ResultOptions) (json.RawMessage, error) {
	if o.JQ != "" {
		return nil, host.Errorf(host.InvalidArgs, "--jq filters JSON, and the result of call %s is binary",
			manifest.CleanLine(o.ID)).WithSteps(host.OperatorStep(host.OpResult, o.ID))
	}
	content, err := os.Open(path)
	if err != nil {
		return nil, host.Errorf(host.NotFound, "%s", manifest.CleanLine(err.Error()))
	}
	defer content.Close()
	if o.Out != "" {
		file := &outFile{path: o.Out, raw: true}
		defer file.discard()
		if _, err := io.Copy(file, content); err != nil {
			return nil, err
		}
		return file.done()
	}
	head := make([]byte, headSize)
	n, _ := io.ReadFull(content, head)
	info, err := content.Stat()
	if err != nil {
		return nil, err
	}
	return manifest.Marshal(host.File{Out: path, Bytes: info.Size(), MIME: host.MediaType(head[:n], "")})
}

// noResult returns the error of an id for which nothing is kept, with the nearest ids of those for which something is.
func noResult(id string, kept []string) *host.Error {
	e := host.Errorf(host.NotFound,
		"no result is kept for call %q in this session: results that were cut are kept for a day, the last %d of a session",
		manifest.Clip(manifest.CleanLine(id), 80), host.MaxResults)
	for _, n := range schema.Nearest(id, kept, 3) {
		e.DidYouMean = append(e.DidYouMean, host.NearName(n))
	}
	return e.WithNext("make the call again; its option --out FILE writes the whole result", "parley help result")
}
