package cdp

import (
	"fmt"
	"io"

	"github.com/parley-tools/parley/host"
)

// thrownWatch passes on a result that comes piece by piece, and sees whether it is that of a script that threw: nobody holds the whole to judge it.
type thrownWatch struct {
	out   io.Writer
	bytes int64
	threw bool // the object has a member exceptionDetails

	depth           int
	quoted, escaped bool
	naming          bool   // what is quoted next is the name of a member of the object itself
	name            []byte // its beginning
}

const exceptionMember = "exceptionDetails"

func (w *thrownWatch) Write(piece []byte) (int, error) {
	for _, b := range piece {
		w.see(b)
	}
	n, err := w.out.Write(piece)
	w.bytes += int64(n)
	return n, err
}

func (w *thrownWatch) see(b byte) {
	switch {
	case w.escaped:
		w.escaped = false
	case w.quoted && b == '\\':
		w.escaped = true
	case w.quoted && b == '"':
		w.quoted = false
		w.threw = w.threw || w.naming && string(w.name) == exceptionMember
	case w.quoted:
		if w.naming && len(w.name) <= len(exceptionMember) {
			w.name = append(w.name, b)
		}
	case b == '"':
		w.quoted, w.name = true, w.name[:0]
	case b == '{', b == '[':
		w.depth++
		w.naming = w.depth == 1
	case b == '}', b == ']':
		w.depth--
		w.naming = false
	case b == ':':
		w.naming = false
	case b == ',':
		w.naming = w.depth == 1
	}
}

// err is the failure in what looks like success.
func (w *thrownWatch) err() error {
	if !w.threw {
		return nil
	}
	e := &host.Error{Message: fmt.Sprintf("the page's script threw; what it threw has %d bytes and is not kept", w.bytes)}
	declared(e, exitScriptError, "script_error", nil)
	return e
}
