package wasm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// capture collects what a guest writes to a stream.
type capture struct {
	c *call
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
	w.c.checkpoint()
	for rest := p; len(rest) > 0; w.c.checkpoint() {
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
		w.c.exceedLimit("%s wrote more than the limit of %d bytes to %s; request less data, or raise output_bytes in "+
			"the plugin's limits", w.c.toolName(), w.limit, w.name)
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
		if w.forwarded > w.c.limits.log {
			w.dropped += len(p)
			return
		}
		w.c.checkpoint()
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

// streams sets up stdout and stderr of a guest. Lines of stderr go to the log.
func (c *call) streams(stdout *capture) {
	c.stdout = stdout
	c.stderr = &capture{c: c, limit: stderrExcerpt, name: "stderr"}
	c.logStderr()
}

// logStderr sends lines of stderr to the log, if it is read.
func (c *call) logStderr() {
	c.stderr.line = nil
	if c.r.Wants.Log {
		c.stderr.line = func(line string) { c.r.Log(0, c.m.Name+": "+line) }
	}
}
