package frame

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/parley-tools/parley/manifest"
	"github.com/parley-tools/parley/manifest/jsontext"
)

const jsonType = "application/json"

// Serve passes a request of Streamable HTTP on to next, the SDK's handler of its revision. Serve itself responds to a
// body that is not a message, and to an unknown revision. revision returns the revision of the request's session; it
// is called for batches.
func Serve(w http.ResponseWriter, r *http.Request, revision func() string, next http.Handler) {
	out, version := &writer{ResponseWriter: w}, r.Header.Get("Mcp-Protocol-Version")
	var entries []entry
	isBatch := false
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method == http.MethodPost && kind == jsonType {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			WriteError(w, http.StatusBadRequest, nil, outerError(err))
			return
		}
		if entries, isBatch = parse(body, revision); !isBatch {
			out.id, version = entries[0].id, cmp.Or(version, entries[0].version) // next compares the two
		}
		defer track(entries, r.Header.Get("Mcp-Session-Id"))()
	}
	if err := checkVersion(version); err != nil {
		WriteError(w, http.StatusBadRequest, out.id, err)
		return
	}
	switch {
	case isBatch:
		serveBatch(w, r, entries, next)
		return
	case entries != nil:
		if err := entries[0].setBody(r); err != nil {
			WriteError(w, http.StatusBadRequest, out.id, err)
			return
		}
	}
	next.ServeHTTP(out, r)
}

// openID is the id of a request over HTTP that has no response yet, as its client wrote it. The id of the session is a
// secret of the client.
type openID struct{ session, id string }

// openIDs has the open ids of all sessions.
var openIDs sync.Map

// track adds the requests of a session to the open ones until done is called. In notifications that cancel a request
// it spells the id as that request has it.
func track(entries []entry, session string) (done func()) {
	var added []openID
	for i := range entries {
		e := &entries[i]
		switch {
		case session == "":
		case e.isCall():
			id := openID{session, string(e.id)}
			if _, isOpen := openIDs.LoadOrStore(id, true); !isOpen {
				added = append(added, id)
			}
		case e.method == cancelled:
			e.spell(func(yield func(string) bool) {
				openIDs.Range(func(key, _ any) bool {
					open := key.(openID)
					return open.session != session || yield(open.id)
				})
			})
		}
	}
	return func() {
		for _, id := range added {
			openIDs.Delete(id)
		}
	}
}

// serveBatch passes each message of a batch on as a request of its own: the SDK refuses a batch as a whole for one
// message that it does not know. The responses are events of one stream.
func serveBatch(w http.ResponseWriter, r *http.Request, entries []entry, next http.Handler) {
	out := &stream{w: w}
	var invalid [][]byte
	var calls sync.WaitGroup
	for i := range entries {
		e, part := &entries[i], r.Clone(r.Context())
		if err := e.setBody(part); err != nil {
			invalid = append(invalid, errorResponse(e.id, err))
			continue
		}
		calls.Go(func() {
			answer := &writer{ResponseWriter: &batchPart{stream: out, header: http.Header{}, silent: e.id == nil}, id: e.id}
			next.ServeHTTP(answer, part)
		})
	}
	if len(invalid) == len(entries) {
		WriteBody(w, http.StatusBadRequest, join(invalid))
		return
	}
	for _, response := range invalid {
		out.write(event(response))
	}
	calls.Wait()
	if !out.begun {
		w.WriteHeader(http.StatusAccepted)
	}
}

func event(message []byte) []byte {
	return slices.Concat([]byte("event: message\ndata: "), message, []byte("\n\n"))
}

// stream is the response to a batch.
type stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	begun bool
}

func (s *stream) write(events []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-cache, no-transform")
	}
	_, _ = s.w.Write(events)
	_ = http.NewResponseController(s.w).Flush()
}

// batchPart is the response to one message of a batch.
type batchPart struct {
	stream *stream
	header http.Header
	silent bool // the message gets no response
}

func (p *batchPart) Header() http.Header { return p.header }
func (p *batchPart) WriteHeader(int)     {}
func (p *batchPart) FlushError() error   { return nil } // each event is flushed

func (p *batchPart) Write(data []byte) (int, error) {
	switch {
	case p.silent:
	case strings.HasPrefix(p.header.Get("Content-Type"), jsonType):
		p.stream.write(event(data))
	default:
		p.stream.write(data)
	}
	return len(data), nil
}

// checkVersion returns an error if a message names an unknown revision. "" names none.
func checkVersion(version string) *jsonrpc.Error {
	known := sdk.SupportedProtocolVersions()
	if version == "" || slices.Contains(known, version) {
		return nil
	}
	version = jsontext.Shorten(manifest.CleanLine(version))
	data, _ := manifest.Marshal(sdk.UnsupportedProtocolVersionData{Supported: known, Requested: version})
	return &jsonrpc.Error{
		Code: sdk.CodeUnsupportedProtocolVersion, Data: data,
		Message: fmt.Sprintf("unknown protocol version %q; expected one of %s", version, strings.Join(known, ", ")),
	}
}

// setBody makes the message, as the SDK reads it, the body of a request.
func (e *entry) setBody(r *http.Request) *jsonrpc.Error {
	if e.err != nil {
		return e.err
	}
	raw, err := jsonrpc.EncodeMessage(e.message())
	if err != nil {
		return outerError(err)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	return nil
}

// RefuseLong responds to a message that is longer than limit with its id. The caller bounds what is read for that.
func RefuseLong(w http.ResponseWriter, body io.Reader, limit int) {
	e := invalid(skim(body), "the message is longer than %d bytes", limit)
	w.Header().Set("Connection", "close")
	WriteError(w, http.StatusRequestEntityTooLarge, e.id, e.err)
}

// RefuseIncomplete responds to a body that ends too early, or is not framed as its headers say.
func RefuseIncomplete(w http.ResponseWriter, err error) {
	WriteError(w, http.StatusBadRequest, nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError,
		Message: "the body is not complete: " + manifest.CleanLine(err.Error())})
}

// WriteError responds with a JSON-RPC error.
func WriteError(w http.ResponseWriter, status int, id json.RawMessage, err *jsonrpc.Error) {
	WriteBody(w, status, errorResponse(id, err))
}

// WriteBody responds with JSON.
func WriteBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// writer restores the client's ids in the messages that the SDK writes, and turns its errors in plain text into
// JSON-RPC errors. The SDK writes one event, or one body, at a time.
type writer struct {
	http.ResponseWriter
	id     json.RawMessage // id of the request
	status int
	plain  bool // the body is an error in plain text
}

func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.status = status
	if w.plain = status >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain"); w.plain {
		w.Header().Set("Content-Type", jsonType)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	out := restore(withCode(p))
	if w.plain {
		fault := outerError(errors.New(strings.TrimSpace(string(p))))
		if w.status < 500 && fault.Code == jsonrpc.CodeInternalError {
			fault.Code = jsonrpc.CodeInvalidRequest
		}
		out = errorResponse(w.id, fault)
	}
	if _, err := w.ResponseWriter.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// withCode returns an event or a body whose message, if that is an error, has one of [Codes].
func withCode(p []byte) []byte {
	const start, fault = `{"jsonrpc":"2.0","id":`, `,"error":`
	from := bytes.Index(p[:min(len(p), 200)], []byte(start))
	if from < 0 || from > 0 && !bytes.HasSuffix(p[:from], []byte("data: ")) {
		return p
	}
	id := jsontext.Scan(p[from+len(start):])
	id.Next()
	at := from + len(start) + id.Offset()
	if !bytes.HasPrefix(p[at:], []byte(fault)) {
		return p
	}
	at += len(fault)
	object := jsontext.Scan(p[at:])
	var inner jsonrpc.Error
	if json.Unmarshal(object.Skip(), &inner) != nil {
		return p
	}
	raw, _ := manifest.Marshal(outerError(&inner))
	return slices.Concat(p[:at], raw, p[at+object.Offset():])
}
