package cdp

import (
	"fmt"
	"io"

	"github.com/parley-tools/parley/host"
)

// exceptionDetector is a writer that passes a result on and detects whether it reports an exception. It scans the
// pieces because a large result is never in memory as a whole.
type exceptionDetector struct {
	out    io.Writer
	bytes  int64
	thrown bool // the object has a member exceptionDetails

	depth             int
	inString, escaped bool
	atKey             bool   // the next string is the name of a member of the top-level object
	name              []byte // the beginning of that name
}

const exceptionMember = "exceptionDetails"

func (w *exceptionDetector) Write(piece []byte) (int, error) {
	for _, b := range piece {
		w.scan(b)
	}
	n, err := w.out.Write(piece)
	w.bytes += int64(n)
	return n, err
}

func (w *exceptionDetector) scan(b byte) {
	switch {
	case w.escaped:
		w.escaped = false
	case w.inString && b == '\\':
		w.escaped = true
	case w.inString && b == '"':
		w.inString = false
		w.thrown = w.thrown || w.atKey && string(w.name) == exceptionMember
	case w.inString:
		if w.atKey && len(w.name) <= len(exceptionMember) {
			w.name = append(w.name, b)
		}
	case b == '"':
		w.inString, w.name = true, w.name[:0]
	case b == '{', b == '[':
		w.depth++
		w.atKey = w.depth == 1
	case b == '}', b == ']':
		w.depth--
		w.atKey = false
	case b == ':':
		w.atKey = false
	case b == ',':
		w.atKey = w.depth == 1
	}
}

// err returns the script_error of a result that reports an exception, nil for others.
func (w *exceptionDetector) err() error {
	if !w.thrown {
		return nil
	}
	e := &host.Error{Message: fmt.Sprintf("the page's script threw; its result of %d bytes was discarded", w.bytes)}
	setDeclaredExit(e, exitScriptError, "script_error", nil)
	return e
}
