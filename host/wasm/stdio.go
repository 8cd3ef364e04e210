package wasm

import (
	"bytes"
	"strings"

	"github.com/parley-tools/parley/manifest"
)

// capture takes what a guest writes on a stream.
type capture struct {
	c *call
	// keep is how many bytes are kept; a guest that writes more is ended where strict is set, and is not told otherwise.
	keep   int
	strict bool
	name   string
	// line gets each whole line, cleaned; may be nil.
	line func(string)

	data    []byte // the first keep bytes
	tail    []byte // the last bytes, where data does not reach
	pending []byte // an unfinished line
	total   int
	lines   int // bytes given to line
}

func (w *capture) Write(p []byte) (int, error) {
	w.c.checkpoint()
	written := len(p)
	w.total += len(p)
	if w.strict && w.total > w.keep {
		w.c.stop("%s wrote more than the %d bytes that are allowed on %s; ask for less, or raise output_bytes in the plugin's limits", w.c.toolName(), w.keep, w.name)
	}
	w.feed(p)
	if n := min(w.keep-len(w.data), len(p)); n > 0 {
		w.data = append(w.data, p[:n]...)
		p = p[n:]
	}
	if len(p) > keptStderr {
		w.tail, p = w.tail[:0], p[len(p)-keptStderr:]
	}
	w.tail = append(w.tail, p...)
	if len(w.tail) > 2*keptStderr {
		w.tail = append(w.tail[:0], w.tail[len(w.tail)-keptStderr:]...)
	}
	return written, nil
}

// feed passes on whole lines, up to a total that keeps the log readable.
func (w *capture) feed(p []byte) {
	if w.line == nil || w.lines > maxLogBytes {
		return
	}
	for len(p) > 0 && w.lines <= maxLogBytes {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			if len(w.pending) < keptStderr {
				w.pending = append(w.pending, p[:min(len(p), keptStderr-len(w.pending))]...)
			}
			return
		}
		w.pending = append(w.pending, p[:min(i, keptStderr)]...)
		p = p[i+1:]
		w.flush()
	}
}

// flush passes on what is left of an unfinished line.
func (w *capture) flush() {
	if w.line == nil || len(w.pending) == 0 {
		return
	}
	w.lines += len(w.pending) + 1
	w.line(manifest.CleanLine(string(w.pending)))
	w.pending = w.pending[:0]
}

// ends returns the beginning and the end of what was written.
func (w *capture) ends() (head, tail string) {
	head = string(w.data)
	tail = head + string(w.tail)
	if len(tail) > keptStderr {
		tail = strings.ToValidUTF8(tail[len(tail)-keptStderr:], "")
	}
	return head, tail
}

// streams sets up a guest's three standard streams. The log gets what it writes on stderr.
func (c *call) streams(stdout *capture) {
	c.stdout = stdout
	c.stderr = &capture{c: c, keep: keptStderr, name: "stderr"}
	if c.r.Log != nil {
		c.stderr.line = func(line string) { c.r.Log(0, c.m.Name+": "+line) }
	}
}
