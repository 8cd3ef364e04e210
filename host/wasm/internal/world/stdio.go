package world

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
)

// Truncate shortens a text for display and appends its full length.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf("… (%d bytes in all)", len(s))
}

// Bounds of what a guest sends to the host, in bytes or items.
const (
	MaxHostRequest   = 16 << 20 // a call_tool or http_request
	MaxSecretRequest = 4 << 10
	MaxResponsePart  = 1 << 20  // each part of a response, except its result
	MaxMessage       = 2 << 10  // an error, a log line or a progress report
	MaxDetails       = 64 << 10 // a tool's own error details
	maxWarnings      = 50
	MaxViolations    = 100
)

// Capture collects what a guest writes to a stream.
type Capture struct {
	Control *Control
	// Limit is the number of bytes to keep. If Strict is set, a guest that writes more is stopped; otherwise the rest is
	// dropped silently.
	Limit  int
	Strict bool
	Name   string
	// line, if not nil, gets each whole line, cleaned.
	line func(string)

	Data       []byte // the first Limit bytes
	tail       []byte // the last bytes beyond Data
	Total      int
	pending    []byte // the beginning of an unfinished line
	lineLength int    // the full length of that line
	Forwarded  int    // bytes forwarded to line
	Dropped    int    // bytes not forwarded
}

func (w *Capture) Write(p []byte) (int, error) {
	w.Control.Checkpoint()
	for rest := p; len(rest) > 0; w.Control.Checkpoint() {
		n := min(len(rest), chunkBytes)
		w.store(rest[:n])
		rest = rest[n:]
	}
	return len(p), nil
}

// store keeps or forwards a piece of output.
func (w *Capture) store(p []byte) {
	w.Total += len(p)
	if w.Strict && w.Total > w.Limit {
		w.Control.ExceedLimit("%s wrote more than the limit of %d bytes to %s; request less data, or raise output_bytes in "+
			"the plugin's limits", w.Control.Tool, w.Limit, w.Name)
	}
	w.forward(p)
	if n := min(w.Limit-len(w.Data), len(p)); n > 0 {
		w.Data = append(w.Data, p[:n]...)
		p = p[n:]
	}
	if len(p) > StderrExcerpt {
		w.tail, p = w.tail[:0], p[len(p)-StderrExcerpt:]
	}
	w.tail = append(w.tail, p...)
	if len(w.tail) > 2*StderrExcerpt {
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-StderrExcerpt:]...)
	}
}

// forward forwards whole lines, up to the log limit.
func (w *Capture) forward(p []byte) {
	if w.line == nil {
		return
	}
	for len(p) > 0 {
		if w.Forwarded > w.Control.Limits.Log {
			w.Dropped += len(p)
			return
		}
		w.Control.Checkpoint()
		text, rest, done := bytes.Cut(p, []byte("\n"))
		w.lineLength += len(text)
		w.pending = append(w.pending, text[:max(0, min(len(text), StderrExcerpt-len(w.pending)))]...)
		p = rest
		if done {
			w.Forwarded++
			w.forwardLine()
		}
	}
}

// forwardLine forwards the pending line.
func (w *Capture) forwardLine() {
	if w.lineLength == 0 {
		return
	}
	w.Forwarded += len(w.pending)
	text := manifest.CleanLine(string(w.pending))
	if w.lineLength > len(w.pending) {
		text += fmt.Sprintf("… (%d bytes in all)", w.lineLength)
	}
	w.line(text)
	w.pending, w.lineLength = w.pending[:0], 0
}

// Flush forwards an unfinished line, and logs how much was dropped.
func (w *Capture) Flush() {
	if w.line == nil {
		return
	}
	w.forwardLine()
	if w.Dropped > 0 {
		w.line(fmt.Sprintf("… (%d more bytes on %s are not shown)", w.Dropped, w.Name))
	}
}

// Excerpts returns the beginning and the end of the output.
func (w *Capture) Excerpts() (head, tail string) {
	head = string(w.Data)
	tail = head + string(w.tail)
	if len(tail) > StderrExcerpt {
		tail = strings.ToValidUTF8(tail[len(tail)-StderrExcerpt:], "")
	}
	return head, tail
}

// LastLines returns the last n non-empty lines, cleaned, and the number of bytes before them.
func (w *Capture) LastLines(n int) (lines []string, before int) {
	_, tail := w.Excerpts()
	from := len(tail)
	for from > 0 && len(lines) < n {
		i := strings.LastIndexByte(tail[:from], '\n') + 1
		if line := strings.TrimSpace(manifest.Clean(tail[i:from])); line != "" {
			lines = append(lines, line)
		}
		from = max(i-1, 0)
	}
	slices.Reverse(lines)
	if len(strings.TrimSpace(tail[:from])) == 0 {
		from = 0
	}
	return lines, w.Total - len(tail) + from
}

// Streams are a guest's stdin, stdout and stderr.
type Streams struct {
	Stdin          bytes.Reader
	Stdout, Stderr *Capture
}

// Configure gives the streams to a module.
func (s *Streams) Configure(config wazero.ModuleConfig) wazero.ModuleConfig {
	return config.WithStdin(&s.Stdin).WithStdout(s.Stdout).WithStderr(s.Stderr)
}

// Tail returns the last n lines of stderr. It also says how much came before them.
func (s *Streams) Tail(n int, before string) (lines []string) {
	lines, size := s.Stderr.LastLines(n)
	if size > 0 {
		lines = append([]string{fmt.Sprintf(before, size)}, lines...)
	}
	return lines
}

// Summary returns what the guest last wrote to stderr, for a message: the line of a Go panic, or else the last lines.
func (s *Streams) Summary() string {
	if s.Stderr == nil {
		return ""
	}
	head, _ := s.Stderr.Excerpts()
	for line := range strings.Lines(head) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return Line(line, 300)
		}
	}
	return Truncate(manifest.CleanLine(strings.Join(s.Tail(3, "(%d bytes before)"), " | ")), 400)
}

// Messages are what a guest reports while it runs. The log and the reports of progress have one limit.
type Messages struct {
	Control *Control
	Request *host.Request
	Plugin  string
	bytes   int
	calls   int
	Last    []string // the last log messages
}

// Log logs a message of the guest.
func (m *Messages) Log(level int, message []byte) {
	text := m.Text(message)
	m.Last = append(m.Last[max(0, len(m.Last)-TraceLines+1):], text)
	m.Request.Log(level, m.Plugin+": "+text)
}

// Text returns a message of the guest as text, and counts it against the limits.
func (m *Messages) Text(raw []byte) string {
	m.bytes += len(raw)
	if m.calls++; m.bytes > m.Control.Limits.Log || m.calls > maxLogCalls {
		m.Control.ExceedLimit("%s logged more than %d bytes or %d lines in one call", m.Control.Tool, m.Control.Limits.Log,
			maxLogCalls)
	}
	return Line(string(raw), MaxMessage)
}

// StderrTo makes stderr forward its lines to the log, if anyone reads the log.
func (m *Messages) StderrTo(stderr *Capture) {
	stderr.line = nil
	if m.Request.Wants.Log {
		stderr.line = func(line string) { m.Request.Log(0, m.Plugin+": "+line) }
	}
}

// Bounds of a trace: the number of frames, which is the engine's own limit, and the number of lines of each text.
const (
	TraceFrames = 30
	TraceLines  = 20
)

// Line returns a text for display as one clean line, as [Truncate] does.
func Line(s string, n int) string { return Truncate(manifest.CleanLine(s), n) }

// CleanWarnings returns the first warnings of a guest, each cleaned and clipped.
func CleanWarnings(warnings []string) []string {
	var out []string
	for i, w := range warnings {
		if i == maxWarnings {
			return append(out, fmt.Sprintf("%d more warnings were omitted", len(warnings)-i))
		}
		out = append(out, Line(w, 500))
	}
	return out
}

// Failed returns an error with its cause.
func Failed(code host.Code, cause error, format string, args ...any) *host.Error {
	e := host.Errorf(code, format, args...)
	e.Cause = cause
	return e
}
