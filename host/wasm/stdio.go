package wasm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/host"
	"github.com/parley-tools/parley/manifest"
	"github.com/tetratelabs/wazero"
)

// capture collects what a guest writes to a stream.
type capture struct {
	control *control
	// limit is the number of bytes to keep. If strict is set, a guest that writes more is stopped; else the rest is
	// dropped silently.
	limit  int
	strict bool
	name   string
	// line, if not nil, gets each whole line, cleaned.
	line func(string)

	data       []byte // the first limit bytes
	tail       []byte // the last bytes beyond data
	total      int
	pending    []byte // the beginning of an unfinished line
	lineLength int    // of that line
	forwarded  int    // bytes forwarded to line
	dropped    int    // bytes not forwarded
}

func (w *capture) Write(p []byte) (int, error) {
	w.control.checkpoint()
	for rest := p; len(rest) > 0; w.control.checkpoint() {
		n := min(len(rest), chunkBytes)
		w.store(rest[:n])
		rest = rest[n:]
	}
	return len(p), nil
}

// store keeps or forwards a piece of output.
func (w *capture) store(p []byte) {
	w.total += len(p)
	if w.strict && w.total > w.limit {
		w.control.exceedLimit("%s wrote more than the limit of %d bytes to %s; request less data, or raise output_bytes in "+
			"the plugin's limits", w.control.tool, w.limit, w.name)
	}
	w.forward(p)
	if n := min(w.limit-len(w.data), len(p)); n > 0 {
		w.data = append(w.data, p[:n]...)
		p = p[n:]
	}
	if len(p) > stderrExcerpt {
		w.tail, p = w.tail[:0], p[len(p)-stderrExcerpt:]
	}
	w.tail = append(w.tail, p...)
	if len(w.tail) > 2*stderrExcerpt {
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-stderrExcerpt:]...)
	}
}

// forward forwards whole lines, up to the log limit.
func (w *capture) forward(p []byte) {
	if w.line == nil {
		return
	}
	for len(p) > 0 {
		if w.forwarded > w.control.limits.log {
			w.dropped += len(p)
			return
		}
		w.control.checkpoint()
		text, rest, done := bytes.Cut(p, []byte("\n"))
		w.lineLength += len(text)
		w.pending = append(w.pending, text[:max(0, min(len(text), stderrExcerpt-len(w.pending)))]...)
		p = rest
		if done {
			w.forwarded++
			w.forwardLine()
		}
	}
}

// forwardLine forwards the pending line.
func (w *capture) forwardLine() {
	if w.lineLength == 0 {
		return
	}
	w.forwarded += len(w.pending)
	text := manifest.CleanLine(string(w.pending))
	if w.lineLength > len(w.pending) {
		text += fmt.Sprintf("… (%d bytes in all)", w.lineLength)
	}
	w.line(text)
	w.pending, w.lineLength = w.pending[:0], 0
}

// flush forwards an unfinished line, and reports how much was dropped.
func (w *capture) flush() {
	if w.line == nil {
		return
	}
	w.forwardLine()
	if w.dropped > 0 {
		w.line(fmt.Sprintf("… (%d more bytes on %s are not shown)", w.dropped, w.name))
	}
}

// excerpts returns the beginning and the end of the output.
func (w *capture) excerpts() (head, tail string) {
	head = string(w.data)
	tail = head + string(w.tail)
	if len(tail) > stderrExcerpt {
		tail = strings.ToValidUTF8(tail[len(tail)-stderrExcerpt:], "")
	}
	return head, tail
}

// lastLines returns the last n non-empty lines, cleaned, and the number of bytes before them.
func (w *capture) lastLines(n int) (lines []string, before int) {
	_, tail := w.excerpts()
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
	return lines, w.total - len(tail) + from
}

// streams are the standard streams of a guest.
type streams struct {
	stdin          bytes.Reader
	stdout, stderr *capture
}

func (s *streams) configure(config wazero.ModuleConfig) wazero.ModuleConfig {
	return config.WithStdin(&s.stdin).WithStdout(s.stdout).WithStderr(s.stderr)
}

// tail returns the last n lines of stderr, and how much was before them.
func (s *streams) tail(n int, before string) (lines []string) {
	lines, size := s.stderr.lastLines(n)
	if size > 0 {
		lines = append([]string{fmt.Sprintf(before, size)}, lines...)
	}
	return lines
}

// summary returns what the guest last wrote to stderr, fit for a message: the line of a Go panic, or the last lines.
func (s *streams) summary() string {
	if s.stderr == nil {
		return ""
	}
	head, _ := s.stderr.excerpts()
	for line := range strings.Lines(head) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return truncate(manifest.CleanLine(line), 300)
		}
	}
	return truncate(manifest.CleanLine(strings.Join(s.tail(3, "(%d bytes before)"), " | ")), 400)
}

// messages are what a guest reports while it runs. The log and the reports of progress have one limit.
type messages struct {
	control *control
	request *host.Request
	plugin  string
	bytes   int
	calls   int
	last    []string // of the log
}

// log logs a message of the guest.
func (m *messages) log(level int, message []byte) {
	text := m.text(message)
	m.last = append(m.last[max(0, len(m.last)-traceLines+1):], text)
	m.request.Log(level, m.plugin+": "+text)
}

// text returns a message of the guest as text, and counts it against the limits.
func (m *messages) text(raw []byte) string {
	m.bytes += len(raw)
	if m.calls++; m.bytes > m.control.limits.log || m.calls > maxLogCalls {
		m.control.exceedLimit("%s logged more than %d bytes or %d lines in one call", m.control.tool, m.control.limits.log,
			maxLogCalls)
	}
	return truncate(manifest.CleanLine(string(raw)), maxMessage)
}

// stderrTo sends lines of stderr to the log, if it is read.
func (m *messages) stderrTo(stderr *capture) {
	stderr.line = nil
	if m.request.Wants.Log {
		stderr.line = func(line string) { m.request.Log(0, m.plugin+": "+line) }
	}
}
